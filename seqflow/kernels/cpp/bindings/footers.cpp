// The column chunks in footers of Parquet files: Thrift's compact protocol. In NumPy: footers.py.
//
// What is not as a footer should be is declined, so that the same reader says what is wrong with it.
#include <string>
#include <vector>

#include "bindings/python.h"

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

nb::object read_footer(nb::handle footer) {
  const Buffer bytes(footer);
  if (bytes.type() != UINT8 || !dtype_of(footer).equal(dtype_named(UINT8)) || bytes.rank() != 1) decline();
  Reader reader(bytes.data(), bytes.data() + bytes.bytes());
  std::vector<int64_t> counts;
  std::vector<Chunk> chunks;
  std::vector<uint8_t> limits;
  std::vector<int64_t> rows;
  std::string description;
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
      description.push_back(static_cast<char>(field));
      description.append(reinterpret_cast<const char *>(start), reader.position() - start);
    } else {
      reader.structs(kind, [&] {
        const size_t before = chunks.size();
        uint32_t of_group = 0;
        rows.push_back(-1);
        reader.fields([&](int64_t number, Kind of) {
          if (number == COLUMNS && (of_group & bit(number))) decline();
          of_group |= bit(number);
          if (number == COLUMNS)
            reader.structs(of, [&] { chunks.push_back(read_column(reader, limits, is_complete)); });
          else if (number == ROWS_OF_GROUP && of == I64)
            rows.back() = reader.integer();
          else if (number == ROWS_OF_GROUP)
            decline();
          else
            reader.skip(of);
        });
        if (!(of_group & bit(COLUMNS))) decline();
        is_complete &= (of_group & OF_GROUP) == OF_GROUP;
        counts.push_back(static_cast<int64_t>(chunks.size() - before));
      });
    }
  });
  int64_t left = num_rows;
  for (const int64_t one : rows) {
    is_complete &= one >= 0 && one <= left;
    if (is_complete) left -= one;
  }
  is_complete &= left == 0 && (seen & OF_FILE) == OF_FILE && !(seen & ~KNOWN);
  if (!is_complete) description.clear();
  if (!(seen & bit(COLUMN_ORDERS))) {
    limits.clear();
    for (Chunk &chunk : chunks) chunk.minimum_size = chunk.maximum_size = -1;
  }
  const int64_t size = static_cast<int64_t>(chunks.size());
  nb::object numbers = int64_array(reinterpret_cast<const int64_t *>(chunks.data()), NUMBERS * size);
  const int64_t groups = static_cast<int64_t>(counts.size());
  return nb::make_tuple(nb::bytes(description.data(), description.size()), int64_array(rows.data(), groups),
                        int64_array(counts.data(), groups),
                        numbers.attr("reshape")(size, NUMBERS),
                        nb::bytes(reinterpret_cast<const char *>(limits.data()), limits.size()));
}

}  // namespace footers
}  // namespace

void bind_footers(nb::module_ &module) { bind_kernel(module, "read_footer", footers::read_footer); }

}  // namespace seqflow
