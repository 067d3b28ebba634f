// Lines of JSON or CSV, parsed into columns in one pass. Lines that are not plain are named, and left to
// providers/lines, as all lines are without this extension: line_columns.py.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bindings/python.h"
#include "lines/letters.h"
#include "shared/numerals.h"
#include "shared/processor.h"

namespace seqflow {
namespace {
namespace line_columns {

using numerals::Text;

using numerals::DIGITS;

enum Leaf { NOTHING, SKIPPED, BOOL, NUMBER, TEXT };
constexpr Stops JSON_STOPS = stops_of('"', '\\', '"', ' ');

// The letters that escapes of JSON stand for; 0 of others.
struct Escaped {
  uint8_t of[256];
  constexpr Escaped() : of{} {
    const char *const escapes = "\"\\/bfnrt", *const meant = "\"\\/\b\f\n\r\t";
    for (int i = 0; escapes[i]; ++i) of[static_cast<int>(escapes[i])] = static_cast<uint8_t>(meant[i]);
  }
};
constexpr Escaped ESCAPED;
constexpr int64_t FEW_ODD = 64;  // below that, lines that are not plain are never too many
constexpr size_t FEW_KEYS = 4;   // compared before a key is looked up, which takes longer than comparing so many
constexpr int64_t FEW_LISTS = 4;  // columns that have room for all items from the start

template <class T>
struct Array {
  nb::object array;
  std::unique_ptr<Buffer> view;
  T *data = nullptr;
  int64_t size = 0, item = 0;  // elements, and bytes of each

  void make(int64_t length, const Buffer &like, nb::handle dtype) {
    nb::object made = empty_array({length}, like, 1, dtype);
    std::unique_ptr<Buffer> its(new Buffer(made, ANY, true));
    if (view) std::memcpy(its->data(), view->data(), std::min(view->bytes(), its->bytes()));
    array = made;
    view = std::move(its);
    data = reinterpret_cast<T *>(view->data());
    size = length;
    item = view->item_bytes();
  }
  // The first entries; copied where most of the memory would be kept in vain.
  nb::object first(int64_t count) const {
    if (!view) return nb::none();
    nb::object found = array[nb::slice(count)];
    return count < size / 2 ? copy_of(found) : found;
  }
};

// A column: one value for each row, or those of all lists one after another. Texts are bytes with offsets of their own.
struct Column {
  std::string name;
  bool is_list = false;
  Leaf leaf = NOTHING;
  Type type = UINT8;
  Array<uint8_t> values, missing;
  Array<int32_t> offsets, text_offsets;  // of lists; of texts
  int64_t used = 0, texts = 0;           // values, and texts in lists
  int64_t row = -1;                      // the last one with this key
  Stops stops = 0, quoted_stops = 0;     // of texts of CSV

  bool has_texts() const { return leaf == TEXT || leaf == SKIPPED; }
  int64_t items() const { return leaf == TEXT ? texts : used; }  // of all lists
  int64_t most_items() const { return leaf == TEXT ? text_offsets.size - 1 : values.size; }
  // Bytes of lines whose texts fit in.
  int64_t text_room() const { return has_texts() ? values.size - used - COPY_ROOM : INT64_MAX; }
  void forget(int64_t from) {
    missing.data[from] = true;
    row = -1;
    if (is_list) (leaf == TEXT ? texts : used) = offsets.data[from];
    if (leaf == TEXT) used = text_offsets.data[is_list ? texts : from];
  }
};

struct Parser {
  const Buffer &like;
  const LettersKernels &letters;
  const Survey survey;
  const bool is_json;
  const uint8_t delimiter, list_delimiter;  // of CSV
  std::vector<Column> columns;
  const uint8_t *const end;
  const uint8_t *at;  // the next line
  Text text{nullptr, nullptr};  // the rest of a line
  int64_t row = 0, rows = 0;  // rows: those that there is room for
  int64_t room = 0;           // bytes of lines whose texts fit into each column
  int64_t most_items = 0;     // of a column of lists
  Column *full = nullptr;     // with too little room for the items of a line
  std::vector<int64_t> odd, starts, stops;
  std::unordered_map<std::string_view, size_t> places;  // of columns, by name

  void make_arrays() {
    const int64_t count = std::max<int64_t>(columns.size(), 1);
    int64_t texts = 0, lists = 0;
    for (const Column &column : columns) texts += column.has_texts(), lists += column.is_list;
    // As many rows as have a byte for each column, all lines of a usual file: blank lines need no room.
    make_rows(std::min(survey.newlines, like.bytes() / count + 1));
    most_items = std::min(survey.letters + survey.newlines, like.bytes());
    const int64_t items = lists <= FEW_LISTS ? most_items : most_items / lists * FEW_LISTS;
    for (Column &column : columns) {
      if (column.has_texts()) column.values.make(like.bytes() / texts + COPY_ROOM, like, dtype_named(UINT8));
      if (column.is_list) make_items(column, items);
      const uint8_t between = column.is_list ? list_delimiter : '"';
      column.stops = stops_of('"', delimiter, between, 0);
      column.quoted_stops = stops_of('"', '"', between, 0);
      if (column.is_list) column.offsets.data[0] = 0;
      if (column.leaf == TEXT) column.text_offsets.data[0] = 0;
    }
    for (size_t k = 0; is_json && k < columns.size(); ++k) places.emplace(columns[k].name, k);
  }

  void make_rows(int64_t count) {
    for (Column &column : columns) {
      if (!column.is_list && !column.has_texts() && column.leaf != NOTHING) make_values(column, count);
      if (column.is_list) column.offsets.make(count + 1, like, dtype_named(INT32));
      if (!column.is_list && column.leaf == TEXT) column.text_offsets.make(count + 1, like, dtype_named(INT32));
      column.missing.make(count, like, bool_dtype());
      std::memset(column.missing.data + rows, true, count - rows);
    }
    rows = count;
  }
  void make_items(Column &column, int64_t count) {
    if (column.leaf == TEXT)
      column.text_offsets.make(count + 1, like, dtype_named(INT32));
    else
      make_values(column, count);
  }
  void make_values(Column &column, int64_t count) {
    column.values.make(count, like, column.leaf == BOOL ? bool_dtype() : dtype_named(column.type));
  }

  bool has_room(int64_t line) {
    if (row < rows && line <= room) return true;
    room = INT64_MAX;
    for (const Column &column : columns) room = std::min(room, column.text_room());
    return row < rows && line <= room;
  }
  // Make room for a line whatever its texts are, and for more items of a full column: at least twice as much.
  void grow(int64_t line) {
    if (row == rows) make_rows(std::min(2 * rows + FEW_ODD, survey.newlines));
    if (full) make_items(*full, std::min(2 * full->most_items() + FEW_ODD, most_items));
    full = nullptr;
    for (Column &column : columns)
      if (column.text_room() < line)
        column.values.make(std::min(2 * column.values.size + line, like.bytes()) + COPY_ROOM, like, dtype_named(UINT8));
  }

  // ---- letters and values: what is at text.at, which is moved behind it; false where there is another

  bool letter(uint8_t wanted) {
    if (text.next() != wanted) return false;
    ++text.at;
    return true;
  }
  void skip_blanks() {
    while (text.next() == ' ' || text.next() == '\t' || text.next() == '\r') ++text.at;
  }

  bool boolean(uint8_t &value) {
    value = 1;
    if (text.skip("true", 4) || (!is_json && (text.skip("True", 4) || text.skip("TRUE", 4) || letter('1')))) return true;
    value = 0;
    return text.skip("false", 5) || (!is_json && (text.skip("False", 5) || text.skip("FALSE", 5) || letter('0')));
  }

  template <class T>
  bool number(T &value) {
    Text here{text.at, text.end};  // in registers
    const bool is_number = number_at(here, value);
    text.at = here.at;
    return is_number;
  }
  template <class T>
  __attribute__((always_inline)) bool number_at(Text &text, T &value) const {
    const uint8_t *const first = text.at + (text.next() == '-');
    if (text.next() == '+') return false;
    if (is_json && text.end - first > 1 && first[0] == '0' && static_cast<uint8_t>(first[1] - '0') < 10) return false;
    if constexpr (std::is_integral_v<T>) {
      int64_t found;
      if ((std::is_unsigned_v<T> && first > text.at) || !text.integer(found)) return false;
      value = static_cast<T>(found);
      return static_cast<int64_t>(value) == found && (std::is_signed_v<T> || found >= 0);
    } else {
      return text.number(value);
    }
  }
  template <class T>
  bool store_number(Column &column, int64_t place) {
    return number(reinterpret_cast<T *>(column.values.data)[place]);
  }
  // Parse a number or a bool into this place of the column's values.
  bool store(Column &column, int64_t place) {
    if (column.leaf == BOOL) return boolean(column.values.data[place]);
    if (column.leaf != NUMBER) return false;
    constexpr bool (Parser::*of[NUM_TYPES])(Column &, int64_t) = {
        &Parser::store_number<int8_t>,  &Parser::store_number<uint8_t>, &Parser::store_number<int16_t>,
        &Parser::store_number<uint16_t>, &Parser::store_number<int32_t>, &Parser::store_number<uint32_t>,
        &Parser::store_number<int64_t>, &Parser::store_number<uint64_t>, &Parser::store_number<float>,
        &Parser::store_number<double>};
    return (this->*of[column.type])(column, place);
  }

  // Append to a column's texts what comes before a letter of `stops`, or the end of the line. There is room for the
  // whole line.
  void copy_until(Column &column, Stops stops) {
    const uint8_t *const stop = letters.copy_until(text.at, text.end, end, stops, column.values.data + column.used);
    column.used += stop - text.at;
    text.at = stop;
  }

  // Append a text after its opening quote.
  bool json_text(Column &column) {
    for (;;) {
      copy_until(column, JSON_STOPS);
      if (letter('"')) return true;
      if (!escapes(column)) return false;
    }
  }

  // Append the letters that escapes stand for, at least one; all in a row, since each copy takes a vector of letters.
  bool escapes(Column &column) {
    const uint8_t *from = text.at, *const stop = text.end;
    uint8_t *to = column.values.data + column.used;
    while (stop - from > 1 && *from == '\\') {
      const uint8_t letter = from[1], meant = ESCAPED.of[letter];
      from += 2;
      if (letter == 'u' ? !unicode(from, stop, to) : !meant) return false;
      if (meant) *to++ = meant;
    }
    const bool any = from > text.at;
    column.used = to - column.values.data;
    text.at = from;
    return any;
  }

  static int32_t four_digits(const uint8_t *from, const uint8_t *stop) {
    if (stop - from < 4) return -1;
    const uint32_t a = DIGITS.of[from[0]], b = DIGITS.of[from[1]], c = DIGITS.of[from[2]], d = DIGITS.of[from[3]];
    return (a | b | c | d) > 15 ? -1 : static_cast<int32_t>(a << 12 | b << 8 | c << 4 | d);
  }
  // The letter of the digits at `from`, which is moved behind them, in UTF-8. A surrogate must be one of two.
  static bool unicode(const uint8_t *&from, const uint8_t *stop, uint8_t *&to) {
    constexpr int32_t HIGH = 0xd800 >> 10, LOW = 0xdc00 >> 10;
    int32_t code = four_digits(from, stop);
    if (code < 0 || code >> 10 == LOW) return false;
    from += 4;
    if (code >> 10 == HIGH) {
      const int32_t low = stop - from > 1 && from[0] == '\\' && from[1] == 'u' ? four_digits(from + 2, stop) : -1;
      if (low >> 10 != LOW) return false;
      from += 6;
      code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    }
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr uint8_t MARKS[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = static_cast<uint8_t>(MARKS[more] | code >> 6 * more);
    for (int shift = 6 * (more - 1); shift >= 0; shift -= 6) *to++ = static_cast<uint8_t>(0x80 | (code >> shift & 0x3f));
    return true;
  }

  // One more value of a list: a text that `append` appends, or another value.
  template <class Append>
  bool item(Column &column, Append append) {
    if (column.leaf != TEXT) {
      if (column.used < column.values.size) return store(column, column.used++);
    } else if (column.texts + 1 < column.text_offsets.size) {
      if (!append()) return false;
      column.text_offsets.data[++column.texts] = static_cast<int32_t>(column.used);
      return true;
    }
    if (column.items() < most_items) full = &column;
    return false;
  }

  // ---- JSON

  bool json_value(Column &column) {
    const auto append = [&] { return letter('"') && json_text(column); };
    if (!column.is_list) return column.leaf == TEXT ? append() : store(column, row);
    if (!letter('[')) return false;
    skip_blanks();
    if (letter(']')) return true;
    for (;;) {
      if (!item(column, append)) return false;
      if (!letter(',')) {
        skip_blanks();
        if (letter(']')) return true;
        if (!letter(',')) return false;
      }
      skip_blanks();
    }
  }

  // The column of the key after its opening quote; those from `expected` on are compared first. Null for another key.
  Column *column_of_key(size_t &expected) {
    size_t k = expected;
    for (const size_t stop = std::min(k + FEW_KEYS, columns.size()); k < stop; ++k) {
      const std::string &name = columns[k].name;
      const int64_t size = static_cast<int64_t>(name.size());
      if (text.end - text.at > size && text.at[size] == '"' && std::memcmp(text.at, name.data(), size) == 0)
        return column_after(size, k, expected);
    }
    const void *const quote = std::memchr(text.at, '"', text.end - text.at);
    if (!quote) return nullptr;
    const int64_t size = static_cast<const uint8_t *>(quote) - text.at;
    const auto found = places.find(std::string_view(reinterpret_cast<const char *>(text.at), size));
    return found == places.end() ? nullptr : column_after(size, found->second, expected);
  }
  // Column k, whose key has that size; the next one is expected after it.
  Column *column_after(int64_t size, size_t k, size_t &expected) {
    text.at += size + 1;
    expected = k + 1;
    return &columns[k];
  }

  bool json_line() {
    if (!letter('{')) return false;
    skip_blanks();
    for (size_t expected = 0; text.next() != '}';) {
      Column *const column = letter('"') ? column_of_key(expected) : nullptr;
      if (!column || column->row == row) return false;  // not declared, or there twice
      column->row = row;
      skip_blanks();
      if (!letter(':')) return false;
      skip_blanks();
      if (!text.skip("null", 4)) {
        if (!json_value(*column)) return false;
        column->missing.data[row] = false;
      }
      skip_blanks();
      if (!letter(',')) break;
      skip_blanks();
      if (text.next() != '"') return false;
    }
    return letter('}') && text.at == text.end;
  }

  // ---- CSV

  // A text; in quotes, two of these are one.
  bool csv_text(Column &column, bool is_quoted) {
    copy_until(column, is_quoted ? column.quoted_stops : column.stops);
    while (is_quoted && text.end - text.at > 1 && text.at[0] == '"' && text.at[1] == '"') {
      column.values.data[column.used++] = '"';
      text.at += 2;
      copy_until(column, column.quoted_stops);
    }
    return true;
  }

  bool csv_value(Column &column) {
    if (text.at == text.end || text.next() == delimiter) {
      column.missing.data[row] = !column.is_list;
      return true;
    }
    const bool is_quoted = letter('"');
    const auto append = [&] { return csv_text(column, is_quoted); };
    column.missing.data[row] = false;
    if (!column.is_list) {
      if (!(column.has_texts() ? append() : store(column, row))) return false;
    } else if (text.next() != '"') {
      do {
        if (!item(column, append)) return false;
      } while (letter(list_delimiter));
    }
    return !is_quoted || letter('"');
  }

  bool csv_line() {
    // a carriage return inside of a line is a fault, also in quotes
    if (survey.returns && std::memchr(text.at, '\r', text.end - text.at)) return false;
    const Column *const first = columns.data();
    for (Column &column : columns)
      if ((&column != first && !letter(delimiter)) || !csv_value(column)) return false;
    return text.at == text.end;
  }

  // ---- lines

  bool is_blank(uint8_t letter) const { return letter == '\r' || (is_json && (letter == ' ' || letter == '\t')); }

  // End the row of a line from `start` on: all is missing where it is not plain.
  void end_row(bool is_plain, const uint8_t *start, const uint8_t *stop) {
    if (!is_plain) {
      odd.push_back(row);
      starts.push_back(start - like.data());
      stops.push_back(stop - like.data());
      for (Column &column : columns) column.forget(row);
    }
    for (Column &column : columns) {
      if (column.is_list)
        column.offsets.data[row + 1] = static_cast<int32_t>(column.items());
      else if (column.leaf == TEXT)
        column.text_offsets.data[row + 1] = static_cast<int32_t>(column.used);
      else if (column.leaf == SKIPPED)
        column.used = 0;
      else if (column.missing.data[row] && column.leaf != NOTHING)
        std::memset(column.values.data + row * column.values.item, 0, column.values.item);
    }
    ++row;
  }

  // Parse lines up to one for which there is too little room; returns its bytes, or 0 at the end.
  int64_t run() {
    const bool is_utf8 = survey.is_ascii || letters.is_utf8(at, end);
    while (at < end && row < survey.newlines) {
      const void *const newline = std::memchr(at, '\n', end - at);
      if (!newline) break;
      const uint8_t *first = at, *last = static_cast<const uint8_t *>(newline);
      const uint8_t *const next = last + 1;
      while (first < last && is_blank(*first)) ++first;
      while (first < last && is_blank(last[-1])) --last;
      if (first < last) {
        if (!has_room(last - first)) return last - first;
        room -= last - first;
        text.at = first;
        text.end = last;
        const bool is_plain = (is_utf8 || letters.is_utf8(first, last)) && (is_json ? json_line() : csv_line());
        if (full) {  // the line is parsed again
          for (Column &column : columns) column.forget(row);
          return last - first;
        }
        end_row(is_plain, first, last);
        if (has_too_many_odd()) break;
      }
      at = next;
    }
    return 0;
  }

  bool has_too_many_odd() const {
    const int64_t count = static_cast<int64_t>(odd.size());
    return count > FEW_ODD && count > row / 2;
  }
};

Column column_of(nb::handle kind) {
  static const struct {
    const char *name;
    Leaf leaf;
    Type type;
  } LEAVES[] = {{"null", NOTHING, UINT8},    {"skipped", SKIPPED, UINT8}, {"bool", BOOL, UINT8},
                {"text", TEXT, UINT8},       {"int8", NUMBER, INT8},      {"uint8", NUMBER, UINT8},
                {"int16", NUMBER, INT16},    {"uint16", NUMBER, UINT16},  {"int32", NUMBER, INT32},
                {"uint32", NUMBER, UINT32},  {"int64", NUMBER, INT64},    {"uint64", NUMBER, UINT64},
                {"float32", NUMBER, FLOAT32}, {"float64", NUMBER, FLOAT64}};
  std::string name = nb::cast<std::string>(kind);
  Column column;
  column.is_list = name.size() > 2 && name[0] == '[';
  if (column.is_list) name = name.substr(1, name.size() - 2);
  for (const auto &each : LEAVES)
    if (name == each.name) {
      column.leaf = each.leaf;
      column.type = each.type;
      if (column.is_list && (column.leaf == NOTHING || column.leaf == SKIPPED)) decline();
      return column;
    }
  decline();
}

// The columns, and the lines that are not plain: row, start and stop of each. None where most are not.
nb::object parse(nb::handle data, bool is_json, nb::handle names, nb::handle kinds, int64_t delimiter,
                 int64_t list_delimiter) {
  const Buffer bytes(data);
  if (bytes.type() != UINT8 || !dtype_of(data).equal(dtype_named(UINT8)) || bytes.rank() != 1) decline();
  if ((delimiter | list_delimiter) & ~int64_t{0x7f}) decline();
  const uint8_t *const first = bytes.data(), *const end = first + bytes.bytes();
  if (bytes.bytes() == 0 || end[-1] != '\n' || bytes.bytes() > INT32_MAX) return nb::none();
  const LettersKernels &letters = SEQFLOW_SELECTED(letters_kernels);
  const uint8_t between = static_cast<uint8_t>(is_json ? ',' : list_delimiter);
  Parser parser{bytes, letters, letters.survey(first, end, between), is_json, static_cast<uint8_t>(delimiter),
                static_cast<uint8_t>(list_delimiter), {}, end, first};
  for (nb::handle kind : kinds) parser.columns.push_back(column_of(kind));
  if (is_json) {
    size_t place = 0;
    for (nb::handle name : names) {
      if (place == parser.columns.size()) decline();
      parser.columns[place++].name = nb::cast<std::string>(name);
    }
    if (place < parser.columns.size()) decline();
  }
  parser.make_arrays();
  for (;;) {
    int64_t line;
    {
      const Unlocked unlocked(bytes.bytes());
      line = parser.run();
    }
    if (!line) break;
    parser.grow(line);
  }
  if (parser.has_too_many_odd()) return nb::none();
  nb::list columns;
  for (const Column &column : parser.columns) {
    const int64_t rows = parser.row, texts = column.is_list ? column.texts : rows;
    const bool is_number = !column.is_list && column.leaf != TEXT;
    columns.append(nb::make_tuple(column.values.first(is_number ? rows : column.used), column.offsets.first(rows + 1),
                                  column.text_offsets.first(texts + 1), column.missing.first(rows)));
  }
  const auto array_of = [](const std::vector<int64_t> &numbers) {
    return int64_array(numbers.data(), static_cast<int64_t>(numbers.size()));
  };
  return nb::make_tuple(nb::tuple(columns), array_of(parser.odd), array_of(parser.starts), array_of(parser.stops));
}

nb::object parse_json(nb::handle data, nb::handle names, nb::handle kinds) {
  return parse(data, true, names, kinds, 0, 0);
}

nb::object parse_csv(nb::handle data, nb::handle kinds, Index delimiter, Index list_delimiter) {
  return parse(data, false, nb::none(), kinds, delimiter, list_delimiter);
}

}  // namespace line_columns
}  // namespace

void bind_line_columns(nb::module_ &module) {
  bind_kernel(module, "parse_json", line_columns::parse_json);
  bind_kernel(module, "parse_csv", line_columns::parse_csv);
}

}  // namespace seqflow
