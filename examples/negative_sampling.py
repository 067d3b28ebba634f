"""Negative sampling: four random items for each click, none of which the user has clicked; others in each epoch.

python examples/negative_sampling.py
"""

import pyarrow as pa

import seqflow as sf

ITEMS = 1000
clicks = pa.table({"user": [1, 2, 3], "clicked": [[5, 3, 900], [1], []]})
net = f"""
negatives.lengths = 4 * clicked.lengths
negatives.values = random_integers(clicked.values, negatives.lengths, clicked.lengths, high={ITEMS}, seed=0)
found = isin_within(negatives.values, negatives.lengths, clicked.values, clicked.lengths)
return user, clicked.values, clicked.lengths, negatives.values, negatives.lengths, found
"""
loader = sf.Loader(clicks, batch=3, net=net, shuffle=True)
drawn = []
for epoch in range(2):
    for batch in loader:
        assert not batch["found"].any()
        drawn.append(batch["negatives"].to_lists())
        print(f"epoch {epoch}: clicked {batch['clicked'].to_lists()}, not clicked {drawn[-1]}")
assert drawn[0] != drawn[1]
