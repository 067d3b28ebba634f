// The column chunks in footers of Parquet files: Thrift's compact protocol. In NumPy: footers.py.
//
// What is not as a footer should be is declined, so that the same reader says what is wrong with it.
#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {
namespace footers {

// Types of fields in the compact protocol.
enum Kind : uint8_t { STOP, YES, NO, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT };

constexpr int MOST_LEVELS = 64;  // of structs and lists in each other

// Reads values one after another; declines where the content ends too early.
class Reader {
 public:
  Reader(const uint8_t *begin, const uint8_t *end) : at(begin), end(end) {}

  uint8_t byte() {
    if (at == end) decline();
    return *at++;
  }

  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t part = byte();
      if (shift == 63 && part > 1) decline();
      value |= static_cast<uint64_t>(part & 127) << shift;
      if (part < 128) return value;
    }
    decline();
  }

  int64_t integer() {
    const uint64_t value = number();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  int64_t count() {
    const int64_t value = integer();
    if (value < 0) decline();
    return value;
  }

  void skip_bytes(uint64_t size) {
    if (size > static_cast<uint64_t>(end - at)) decline();
    at += size;
  }

  // Some bytes, in the footer itself.
  const uint8_t *bytes(int64_t &size) {
    const uint64_t found = number();
    skip_bytes(found);
    size = static_cast<int64_t>(found);
    return at - found;
  }

  // The type of the elements of a list, and how many there are. Each takes a byte at least.
  Kind elements(uint64_t &size) {
    const uint8_t head = byte();
    size = head >> 4 < 15 ? head >> 4 : number();
    if (size > static_cast<uint64_t>(end - at)) decline();
    return static_cast<Kind>(head & 15);
  }

  const uint8_t *position() const { return at; }

  // Call `field(number, kind)` for each field of a struct; it reads or skips the value.
  template <class Field>
  void fields(const Field &field) {
    int64_t number = 0;
    for (uint8_t head; (head = byte()) != STOP;) {
      number = head >> 4 ? number + (head >> 4) : integer();
      field(number, static_cast<Kind>(head & 15));
    }
  }

  // Call `element()` for each element of a list of structs.
  template <class Element>
  void structs(Kind kind, const Element &element) {
    uint64_t size = 0;
    if (kind != LIST || (elements(size) != STRUCT && size)) decline();
    for (; size; --size) element();
  }

  // Call `element(integer)` for each element of a list of integers.
  template <class Element>
  void integers(Kind kind, const Element &element) {
    uint64_t size = 0;
    if (kind != LIST) decline();
    const Kind of = elements(size);
    if (size && (of < I16 || of > I64)) decline();
    for (; size; --size) element(integer());
  }

  void skip(Kind kind, int level = 0) {
    if (level > MOST_LEVELS) decline();
    switch (kind) {
      case YES: case NO: return;
      case I8: byte(); return;
      case I16: case I32: case I64: number(); return;
      case DOUBLE: return skip_bytes(8);
      case BINARY: return skip_bytes(number());
      case LIST: case SET: {
        uint64_t size = 0;
        const Kind of = elements(size);
        for (; size; --size) of == YES || of == NO ? static_cast<void>(byte()) : skip(of, level + 1);
        return;
      }
      case STRUCT: return fields([&](int64_t, Kind of) { skip(of, level + 1); });
      default: decline();
    }
  }

 private:
  const uint8_t *at;
  const uint8_t *const end;
};

// Numbers of fields in the format's Thrift definition.
enum { SCHEMA = 2, NUM_ROWS = 3, ROW_GROUPS = 4, METADATA = 5, WRITER = 6, COLUMN_ORDERS = 7 };
enum { COLUMNS = 1, COLUMN_METADATA = 3, ROWS_OF_GROUP = 3 };
enum { ENCODINGS = 2, NUM_VALUES = 5, UNCOMPRESSED_BYTES = 6, STORED_BYTES = 7, DATA_PAGE = 9, DICTIONARY_PAGE = 11 };
enum { STATISTICS = 12, SIZE_STATISTICS = 16 };
enum { TEXT_BYTES = 1, DEFINITION_LEVELS = 3 };
enum { NULL_COUNT = 3, MAXIMUM = 5, MINIMUM = 6 };
constexpr int64_t MOST_ENCODINGS = 63;

// A bit for each field of a struct: those that were seen, and those that the format demands.
uint32_t bit(int64_t field) { return uint32_t{1} << (field >= 0 && field < 31 ? field : 31); }
constexpr uint32_t KNOWN = 0xfe;  // of a file that is not encrypted
constexpr uint32_t OF_FILE = 0x1e, OF_GROUP = 0xe, OF_COLUMN = 0xc, OF_METADATA = 0x2fe;

struct Chunk {
  int64_t num_values = -1, uncompressed_bytes = -1, text_bytes = -1, encodings = 0, null_count = -1;
  int64_t start = -1, stored_bytes = -1;
  int64_t minimum_size = -1, maximum_size = -1;
};
constexpr int64_t NUMBERS = sizeof(Chunk) / sizeof(int64_t);

// The smallest and largest value of a column chunk.
struct Limits {
  const uint8_t *minimum = nullptr, *maximum = nullptr;
};

void read_statistics(Reader &reader, Chunk &chunk, Limits &limits) {
  chunk.null_count = chunk.minimum_size = chunk.maximum_size = -1;
  reader.fields([&](int64_t field, Kind kind) {
    if (field == NULL_COUNT && kind == I64)
      chunk.null_count = reader.count();
    else if (field == MINIMUM && kind == BINARY)
      limits.minimum = reader.bytes(chunk.minimum_size);
    else if (field == MAXIMUM && kind == BINARY)
      limits.maximum = reader.bytes(chunk.maximum_size);
    else if (field == NULL_COUNT || field == MINIMUM || field == MAXIMUM)
      decline();
    else
      reader.skip(kind);
  });
}

void read_sizes(Reader &reader, Chunk &chunk) {
  chunk.text_bytes = -1;
  reader.fields([&](int64_t field, Kind kind) {
    if (field == TEXT_BYTES && kind == I64)
      chunk.text_bytes = reader.count();
    else if (field == DEFINITION_LEVELS)
      reader.integers(kind, [&](int64_t levels) { if (levels < 0) decline(); });
    else if (field == TEXT_BYTES)
      decline();
    else
      reader.skip(kind);
  });
}

// Return whether all is there that the format demands.
bool read_metadata(Reader &reader, Chunk &chunk, Limits &limits) {
  int64_t data_page = -1, dictionary_page = -1;
  uint32_t seen = 0;
  reader.fields([&](int64_t field, Kind kind) {
    seen |= bit(field);
    if (field == ENCODINGS) {
      chunk.encodings = 0;
      reader.integers(kind, [&](int64_t one) {
        if (one >= 0 && one < MOST_ENCODINGS) chunk.encodings |= int64_t{1} << one;
      });
    } else if (field == NUM_VALUES && kind == I64)
      chunk.num_values = reader.count();
    else if (field == UNCOMPRESSED_BYTES && kind == I64)
      chunk.uncompressed_bytes = reader.count();
    else if (field == STORED_BYTES && kind == I64)
      chunk.stored_bytes = reader.integer();
    else if (field == DATA_PAGE && kind == I64)
      data_page = reader.integer();
    else if (field == DICTIONARY_PAGE && kind == I64)
      dictionary_page = reader.integer();
    else if (field == SIZE_STATISTICS && kind == STRUCT)
      read_sizes(reader, chunk);
    else if (field == STATISTICS && kind == STRUCT)
      read_statistics(reader, chunk, limits);
    else if (field == NUM_VALUES || field == UNCOMPRESSED_BYTES || field == STORED_BYTES || field == DATA_PAGE ||
             field == DICTIONARY_PAGE || field == SIZE_STATISTICS || field == STATISTICS)
      decline();
    else
      reader.skip(kind);
  });
  chunk.start = 0 < dictionary_page && dictionary_page < data_page ? dictionary_page : data_page;
  return (seen & OF_METADATA) == OF_METADATA;
}

Chunk read_column(Reader &reader, std::vector<uint8_t> &values, bool &is_complete) {
  Chunk chunk;
  Limits limits;
  uint32_t seen = 0;
  reader.fields([&](int64_t field, Kind kind) {
    seen |= bit(field);
    if (field != COLUMN_METADATA) return reader.skip(kind);
    if (kind != STRUCT || chunk.num_values >= 0) decline();
    is_complete &= read_metadata(reader, chunk, limits);
  });
  is_complete &= (seen & OF_COLUMN) == OF_COLUMN;
  if (chunk.num_values < 0 || chunk.uncompressed_bytes < 0) decline();
  if (chunk.minimum_size > 0) values.insert(values.end(), limits.minimum, limits.minimum + chunk.minimum_size);
  if (chunk.maximum_size > 0) values.insert(values.end(), limits.maximum, limits.maximum + chunk.maximum_size);
  return chunk;
}

// The contents of a footer.
struct Footer {
  std::string description;
  std::vector<int64_t> rows, counts;
  std::vector<Chunk> chunks;
  std::vector<uint8_t> limits;
};

Footer parse(const uint8_t *begin, const uint8_t *end) {
  Footer found;
  Reader reader(begin, end);
  int64_t num_rows = -1;
  uint32_t seen = 0;
  bool is_complete = true;
  reader.fields([&](int64_t field, Kind kind) {
    if (seen & bit(field)) decline();
    seen |= bit(field);
    if (field == NUM_ROWS) {
      if (kind != I64) decline();
      num_rows = reader.integer();
    } else if (field != ROW_GROUPS) {
      const uint8_t *start = reader.position();
      reader.skip(kind);
      if (field != SCHEMA && field != METADATA && field != WRITER && field != COLUMN_ORDERS) return;
      found.description.push_back(static_cast<char>(field));
      found.description.append(reinterpret_cast<const char *>(start), reader.position() - start);
    } else {
      reader.structs(kind, [&] {
        const size_t before = found.chunks.size();
        uint32_t of_group = 0;
        found.rows.push_back(-1);
        reader.fields([&](int64_t number, Kind of) {
          if (number == COLUMNS && (of_group & bit(number))) decline();
          of_group |= bit(number);
          if (number == COLUMNS)
            reader.structs(of, [&] { found.chunks.push_back(read_column(reader, found.limits, is_complete)); });
          else if (number == ROWS_OF_GROUP && of == I64)
            found.rows.back() = reader.integer();
          else if (number == ROWS_OF_GROUP)
            decline();
          else
            reader.skip(of);
        });
        if (!(of_group & bit(COLUMNS))) decline();
        is_complete &= (of_group & OF_GROUP) == OF_GROUP;
        found.counts.push_back(static_cast<int64_t>(found.chunks.size() - before));
      });
    }
  });
  int64_t left = num_rows;
  for (const int64_t one : found.rows) {
    is_complete &= one >= 0 && one <= left;
    if (is_complete) left -= one;
  }
  is_complete &= left == 0 && (seen & OF_FILE) == OF_FILE && !(seen & ~KNOWN);
  if (!is_complete) found.description.clear();
  if (!(seen & bit(COLUMN_ORDERS))) {
    found.limits.clear();
    for (Chunk &chunk : found.chunks) chunk.minimum_size = chunk.maximum_size = -1;
  }
  return found;
}

nb::object array_of(const std::vector<int64_t> &numbers) {
  return int64_array(numbers.data(), static_cast<int64_t>(numbers.size()));
}

nb::object array_of(const std::vector<Chunk> &chunks) {
  const int64_t size = static_cast<int64_t>(chunks.size());
  return int64_array(reinterpret_cast<const int64_t *>(chunks.data()), NUMBERS * size).attr("reshape")(size, NUMBERS);
}

nb::bytes bytes_of(const std::string &bytes) { return nb::bytes(bytes.data(), bytes.size()); }
nb::bytes bytes_of(const std::vector<uint8_t> &bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::object read_footer(nb::handle footer) {
  const Buffer bytes(footer);
  if (bytes.type() != UINT8 || !dtype_of(footer).equal(dtype_named(UINT8)) || bytes.rank() != 1) decline();
  const Footer found = parse(bytes.data(), bytes.data() + bytes.bytes());
  return nb::make_tuple(bytes_of(found.description), array_of(found.rows), array_of(found.counts),
                        array_of(found.chunks), bytes_of(found.limits));
}

#if defined(_WIN32)
nb::object read_footers(nb::handle) { decline(); }
#else
constexpr int64_t TAIL = 8, TAIL_BYTES = 64 << 10;  // size of the footer and the magic word; bytes that are read

// The footer of a file; without a description where it is not plain, is long, or cannot be read.
Footer footer_of(const char *path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat status;
  const int64_t bytes = fstat(file, &status) == 0 ? std::min<int64_t>(status.st_size, TAIL_BYTES) : 0;
  const std::unique_ptr<uint8_t[]> tail(new uint8_t[bytes]);
  const bool is_read = bytes >= TAIL && pread(file, tail.get(), bytes, status.st_size - bytes) == bytes;
  close(file);
  if (!is_read) return {};
  const uint8_t *const end = tail.get() + bytes - TAIL;
  const int64_t size = end[0] | end[1] << 8 | end[2] << 16 | static_cast<int64_t>(end[3]) << 24;
  if (std::memcmp(end + 4, "PAR1", 4) != 0 || size > bytes - TAIL) return {};
  try {
    Footer found = parse(end - size, end);
    for (const int64_t count : found.counts)
      if (count != found.counts[0]) return {};
    return found;
  } catch (const nb::builtin_exception &) {  // declined
    return {};
  }
}

nb::object read_footers(nb::handle paths) {
  std::vector<const char *> names;  // in memory of Python objects that `paths` holds
  if (!PyList_Check(paths.ptr())) decline();
  for (nb::handle path : paths) {
    if (!PyBytes_Check(path.ptr()) || std::strlen(PyBytes_AS_STRING(path.ptr())) != nb::len(path)) decline();
    names.push_back(PyBytes_AS_STRING(path.ptr()));
  }
  const int64_t size = static_cast<int64_t>(names.size());
  std::vector<Footer> footers(size);
  {
    const Unlocked unlocked(size * TAIL_BYTES);
    parallel_for(size, size * TAIL_BYTES, [&](int64_t i) { footers[i] = footer_of(names[i]); });
  }
  std::unordered_map<std::string, int64_t> kinds;
  Footer all;
  std::vector<int64_t> sizes;
  nb::list descriptions;
  for (const Footer &one : footers) {
    if (one.description.empty()) {
      sizes.insert(sizes.end(), {-1, 0, 0, 0});
      continue;
    }
    const auto kind = kinds.try_emplace(one.description, static_cast<int64_t>(kinds.size()));
    if (kind.second) descriptions.append(bytes_of(one.description));
    sizes.insert(sizes.end(), {kind.first->second, static_cast<int64_t>(one.rows.size()),
                               one.counts.empty() ? 0 : one.counts[0], static_cast<int64_t>(one.limits.size())});
    all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    all.chunks.insert(all.chunks.end(), one.chunks.begin(), one.chunks.end());
    all.limits.insert(all.limits.end(), one.limits.begin(), one.limits.end());
  }
  return nb::make_tuple(nb::tuple(descriptions), array_of(sizes).attr("reshape")(size, 4), array_of(all.rows),
                        array_of(all.chunks), bytes_of(all.limits));
}
#endif

}  // namespace footers
}  // namespace

void bind_footers(nb::module_ &module) {
  bind_kernel(module, "read_footer", footers::read_footer);
  bind_kernel(module, "read_footers", footers::read_footers);
}

}  // namespace seqflow
