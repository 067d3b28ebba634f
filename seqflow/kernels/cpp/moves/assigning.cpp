// Greedy assignment: the most expensive item first, each to the column with the least total that has room.
#include "moves/assigning.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace seqflow {

std::vector<int64_t> assign(Integers costs, Integers room) {
  std::vector<std::pair<int64_t, int64_t>> items(costs.size);  // cost and number, read once: others may write
  for (int64_t i = 0; i < costs.size; ++i) items[i] = {costs[i], i};
  std::stable_sort(items.begin(), items.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  using Column = std::pair<int64_t, int64_t>;  // its total and number
  std::vector<int64_t> next(room.size), stop(room.size);  // the places of each column
  std::vector<Column> open;
  int64_t places = 0;
  for (int64_t column = 0; column < room.size; ++column) {
    const int64_t count = room[column];  // read once: it was checked before
    if (count < 0 || count > costs.size - places) throw Fault{"changed", "room", {}, 0};
    next[column] = places;
    places = stop[column] = places + count;
    if (next[column] < places) open.emplace_back(0, column);
  }
  if (places != costs.size) throw Fault{"changed", "room", {}, 0};
  std::priority_queue<Column, std::vector<Column>, std::greater<Column>> columns({}, std::move(open));
  std::vector<int64_t> found(costs.size, 0);
  for (const auto &[cost, item] : items) {
    const Column least = columns.top();
    columns.pop();
    found[next[least.second]++] = item;
    if (next[least.second] < stop[least.second]) columns.emplace(least.first + cost, least.second);
  }
  return found;
}

}  // namespace seqflow
