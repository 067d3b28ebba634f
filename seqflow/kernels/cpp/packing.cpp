#include "packing.h"

#include <map>

namespace seqflow {
namespace {

struct Piece {
  int64_t row, source, start, length;
};

// How many pieces there are at most, so that impossible numbers fail at once.
int64_t most_pieces(const Numbers &offsets, int64_t capacity) {
  const int64_t num_sequences = offsets.size - 1;
  return offsets[num_sequences] / capacity + num_sequences;
}

// Pieces by row; those of one row stay in the order they were placed.
Plan by_row(const std::vector<Piece> &placed, int64_t num_rows) {
  Plan plan;
  plan.pieces.assign(num_rows, 0);
  for (const Piece &piece : placed) ++plan.pieces[piece.row];
  std::vector<int64_t> next(num_rows);
  int64_t total = 0;
  for (int64_t row = 0; row < num_rows; ++row) {
    next[row] = total;
    total += plan.pieces[row];
  }
  plan.sources.resize(total);
  plan.starts.resize(total);
  plan.piece_lengths.resize(total);
  for (const Piece &piece : placed) {
    const int64_t at = next[piece.row]++;
    plan.sources[at] = piece.source;
    plan.starts[at] = piece.start;
    plan.piece_lengths[at] = piece.length;
  }
  return plan;
}

// The open rows, by the room they have: for each room a stack, linked through the rows.
class OpenRows {
 public:
  static constexpr int64_t NONE = -1;

  // The row on top of the stack of the least room >= size, which it leaves; `room` is the room it has.
  int64_t take(int64_t size, int64_t *room) {
    const auto found = top.lower_bound(size);
    if (found == top.end()) return NONE;
    const int64_t row = found->second;
    *room = found->first;
    if (below[row] == NONE)
      top.erase(found);
    else
      found->second = below[row];
    return row;
  }

  void put(int64_t row, int64_t room) {
    if (row >= static_cast<int64_t>(below.size())) below.resize(row + 1 + row / 2, NONE);
    const auto [place, is_new] = top.try_emplace(room, row);
    below[row] = is_new ? NONE : place->second;
    place->second = row;
  }

 private:
  std::map<int64_t, int64_t> top;  // of the stack of each room that some row has
  std::vector<int64_t> below;      // each row, in its stack
};

// Sequences by their remainders (all <= most), longest first, ties in input order: a counting sort of 16 bits at
// a time.
std::vector<int64_t> longest_first(const std::vector<int64_t> &remainders, int64_t most) {
  const int64_t num_sequences = static_cast<int64_t>(remainders.size());
  std::vector<int64_t> order(num_sequences), other(num_sequences);
  for (int64_t i = 0; i < num_sequences; ++i) order[i] = i;
  constexpr int BITS = 16;
  constexpr int64_t DIGIT = (int64_t{1} << BITS) - 1;
  for (int shift = 0; shift == 0 || most >> shift != 0; shift += BITS) {
    std::vector<int64_t> next(DIGIT + 2, 0);
    for (const int64_t remainder : remainders) ++next[DIGIT - ((remainder >> shift) & DIGIT) + 1];
    for (int64_t digit = 0; digit < DIGIT; ++digit) next[digit + 1] += next[digit];
    for (const int64_t source : order) other[next[DIGIT - ((remainders[source] >> shift) & DIGIT)]++] = source;
    order.swap(other);
  }
  return order;
}

// The rows in a tree, each node with the largest room below it.
class RoomTree {
 public:
  // The lowest row with room for `size`, or -1.
  int64_t first_with(int64_t size) const {
    if (rooms[1] < size) return -1;
    int64_t node = 1;
    while (node < leaves) node = rooms[2 * node] >= size ? 2 * node : 2 * node + 1;
    return node - leaves;
  }

  int64_t room(int64_t row) const { return rooms[leaves + row]; }

  void set(int64_t row, int64_t room) {
    while (row >= leaves) grow();
    int64_t node = leaves + row;
    rooms[node] = room;
    for (node /= 2; node >= 1; node /= 2) {
      const int64_t most = rooms[2 * node] > rooms[2 * node + 1] ? rooms[2 * node] : rooms[2 * node + 1];
      if (rooms[node] == most) break;
      rooms[node] = most;
    }
  }

 private:
  void grow() {
    std::vector<int64_t> wider(4 * leaves, 0);
    for (int64_t i = 0; i < leaves; ++i) wider[2 * leaves + i] = rooms[leaves + i];
    leaves *= 2;
    rooms.swap(wider);
    for (int64_t node = leaves - 1; node >= 1; --node)
      rooms[node] = rooms[2 * node] > rooms[2 * node + 1] ? rooms[2 * node] : rooms[2 * node + 1];
  }

  int64_t leaves = 64;
  std::vector<int64_t> rooms = std::vector<int64_t>(128, 0);
};

}  // namespace

Plan cut_stream(const Numbers &offsets, int64_t capacity) {
  Plan plan;
  const int64_t most = most_pieces(offsets, capacity);
  for (auto *numbers : {&plan.sources, &plan.starts, &plan.piece_lengths}) numbers->reserve(most);
  plan.pieces.reserve(offsets[offsets.size - 1] / capacity + 1);
  int64_t room = 0;
  for (int64_t source = 0; source + 1 < offsets.size; ++source) {
    const int64_t length = offsets[source + 1] - offsets[source];
    for (int64_t start = 0; start < length;) {
      if (room == 0) {
        plan.pieces.push_back(0);
        room = capacity;
      }
      const int64_t size = length - start < room ? length - start : room;
      plan.sources.push_back(source);
      plan.starts.push_back(start);
      plan.piece_lengths.push_back(size);
      ++plan.pieces.back();
      start += size;
      room -= size;
    }
  }
  return plan;
}

Plan best_fit(const Numbers &offsets, int64_t capacity) {
  const int64_t num_sequences = offsets.size - 1;
  std::vector<Piece> placed;
  placed.reserve(most_pieces(offsets, capacity));
  std::vector<int64_t> remainders(num_sequences);
  int64_t num_rows = 0, most = 0;
  for (int64_t source = 0; source < num_sequences; ++source) {
    const int64_t length = offsets[source + 1] - offsets[source];
    int64_t start = 0;
    if (length > capacity)
      for (; length - start >= capacity; start += capacity) placed.push_back({num_rows++, source, start, capacity});
    remainders[source] = length - start;
    if (remainders[source] > most) most = remainders[source];
  }
  OpenRows open;
  for (const int64_t source : longest_first(remainders, most)) {
    const int64_t size = remainders[source];
    if (size == 0) break;
    int64_t room = capacity, row = open.take(size, &room);
    if (row == OpenRows::NONE) row = num_rows++;
    placed.push_back({row, source, offsets[source + 1] - offsets[source] - size, size});
    if (room > size) open.put(row, room - size);
  }
  return by_row(placed, num_rows);
}

Plan first_fit(const Numbers &offsets, int64_t capacity) {
  std::vector<Piece> placed;
  placed.reserve(most_pieces(offsets, capacity));
  RoomTree open;
  int64_t num_rows = 0;
  for (int64_t source = 0; source + 1 < offsets.size; ++source) {
    const int64_t length = offsets[source + 1] - offsets[source];
    for (int64_t start = 0; start < length; start += capacity) {
      const int64_t size = length - start < capacity ? length - start : capacity;
      int64_t row = length <= capacity ? open.first_with(size) : -1;
      if (row < 0) {
        row = num_rows++;
        open.set(row, capacity);
      }
      open.set(row, open.room(row) - size);
      placed.push_back({row, source, start, size});
    }
  }
  return by_row(placed, num_rows);
}

}  // namespace seqflow
