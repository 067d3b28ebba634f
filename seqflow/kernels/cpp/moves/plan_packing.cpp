// Bin packing of sequences into rows: best fit and first fit.
#include "moves/plan_packing.h"

#include <map>

namespace seqflow {
namespace {

constexpr int64_t NONE = -1;

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

// The rooms that some row has, each with one of those rows: a tree of 64-bit words over an array. Fast, and as
// large as the capacity.
class RoomArray {
 public:
  explicit RoomArray(int64_t capacity) : rows(capacity + 1, NONE) {
    int64_t size = capacity + 1;
    do {
      size = (size + 63) / 64;
      levels.emplace_back(size, 0);
    } while (size > 1);
  }

  // The least room >= size, or NONE.
  int64_t next(int64_t size) const {
    for (size_t height = 0; height < levels.size(); ++height, size = size / 64 + 1) {
      const auto &level = levels[height];
      if (size / 64 >= static_cast<int64_t>(level.size())) continue;
      const uint64_t word = level[size / 64] >> (size % 64);
      if (word == 0) continue;
      size += __builtin_ctzll(word);
      for (; height > 0; --height) size = size * 64 + __builtin_ctzll(levels[height - 1][size]);
      return size;
    }
    return NONE;
  }

  int64_t get(int64_t room) const { return rows[room]; }

  void set(int64_t room, int64_t row) {
    const bool was_empty = rows[room] == NONE;
    rows[room] = row;
    if ((row == NONE) == was_empty) return;
    for (auto &level : levels) {
      uint64_t &word = level[room / 64];
      const uint64_t before = word, bit = uint64_t{1} << (room % 64);
      word = was_empty ? word | bit : word & ~bit;
      if (was_empty ? before != 0 : word != 0) return;
      room /= 64;
    }
  }

 private:
  std::vector<int64_t> rows;
  std::vector<std::vector<uint64_t>> levels;
};

// The same, as large as the number of rooms in use.
class RoomMap {
 public:
  explicit RoomMap(int64_t) {}

  int64_t next(int64_t size) const {
    const auto found = rows.lower_bound(size);
    return found == rows.end() ? NONE : found->first;
  }

  int64_t get(int64_t room) const {
    const auto found = rows.find(room);
    return found == rows.end() ? NONE : found->second;
  }

  void set(int64_t room, int64_t row) {
    if (row == NONE)
      rows.erase(room);
    else
      rows[room] = row;
  }

 private:
  std::map<int64_t, int64_t> rows;
};

// The open rows: for each room a stack, linked through the rows.
template <class Rooms>
class OpenRows {
 public:
  explicit OpenRows(int64_t capacity) : tops(capacity) {}

  // The row that changed last of those with the least room >= size, which it leaves; NONE if there is none.
  int64_t take(int64_t size, int64_t *room) {
    const int64_t least = tops.next(size);
    if (least == NONE) return NONE;
    const int64_t row = tops.get(least);
    *room = least;
    tops.set(least, below[row]);
    return row;
  }

  void put(int64_t row, int64_t room) {
    if (row >= static_cast<int64_t>(below.size())) below.resize(row + 1 + row / 2, NONE);
    below[row] = tops.get(room);
    tops.set(room, row);
  }

 private:
  Rooms tops;
  std::vector<int64_t> below;  // each row, in its stack
};

// Sequences by their remainders (all <= most), longest first, ties in input order: a counting sort of 16 bits at
// a time.
std::vector<int64_t> longest_first(const std::vector<int64_t> &remainders, int64_t most) {
  const int64_t num_sequences = static_cast<int64_t>(remainders.size());
  std::vector<int64_t> order(num_sequences), other(num_sequences);
  for (int64_t i = 0; i < num_sequences; ++i) order[i] = i;
  constexpr int BITS = 16;
  constexpr int64_t DIGIT = (int64_t{1} << BITS) - 1;
  for (int shift = 0; shift == 0 || (shift < 64 && most >> shift != 0); shift += BITS) {
    std::vector<int64_t> next(DIGIT + 2, 0);
    for (const int64_t remainder : remainders) ++next[DIGIT - ((remainder >> shift) & DIGIT) + 1];
    for (int64_t digit = 0; digit < DIGIT; ++digit) next[digit + 1] += next[digit];
    for (const int64_t source : order) other[next[DIGIT - ((remainders[source] >> shift) & DIGIT)]++] = source;
    order.swap(other);
  }
  return order;
}

template <class Rooms>
Plan best_fit_in(const Numbers &offsets, int64_t capacity, int64_t max_pieces) {
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
  OpenRows<Rooms> open(capacity);
  std::vector<int64_t> counts;  // pieces of each row that is not full of one
  const int64_t first_open = num_rows;
  for (const int64_t source : longest_first(remainders, most)) {
    const int64_t size = remainders[source];
    if (size == 0) break;
    int64_t room = capacity, row = open.take(size, &room);
    if (row == NONE) {
      row = num_rows++;
      counts.push_back(0);
    }
    placed.push_back({row, source, offsets[source + 1] - offsets[source] - size, size});
    if (++counts[row - first_open] != max_pieces && room > size) open.put(row, room - size);
  }
  return by_row(placed, num_rows);
}

// The rows in a tree, each node with the largest room below it.
class RoomTree {
 public:
  // The lowest row with room for `size`, or NONE.
  int64_t first_with(int64_t size) const {
    if (rooms[1] < size) return NONE;
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

Plan best_fit(const Numbers &offsets, int64_t capacity, int64_t max_pieces) {
  constexpr int64_t SMALL = 1 << 20;
  return capacity <= SMALL ? best_fit_in<RoomArray>(offsets, capacity, max_pieces)
                           : best_fit_in<RoomMap>(offsets, capacity, max_pieces);
}

Plan first_fit(const Numbers &offsets, int64_t capacity, int64_t max_pieces) {
  std::vector<Piece> placed;
  placed.reserve(most_pieces(offsets, capacity));
  RoomTree open;
  std::vector<int64_t> counts;  // pieces of each row
  int64_t num_rows = 0;
  for (int64_t source = 0; source + 1 < offsets.size; ++source) {
    const int64_t length = offsets[source + 1] - offsets[source];
    for (int64_t start = 0; start < length; start += capacity) {
      const int64_t size = length - start < capacity ? length - start : capacity;
      int64_t row = length <= capacity ? open.first_with(size) : NONE;
      if (row == NONE) {
        row = num_rows++;
        counts.push_back(0);
        open.set(row, capacity);
      }
      open.set(row, ++counts[row] == max_pieces ? 0 : open.room(row) - size);
      placed.push_back({row, source, start, size});
    }
  }
  return by_row(placed, num_rows);
}

}  // namespace seqflow
