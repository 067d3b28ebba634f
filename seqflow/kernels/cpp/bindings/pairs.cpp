// Lines `label qid:number index:value …` in one pass. In NumPy: providers/lines/libsvm.py, for all other lines, too.
#include "bindings/python.h"
#include "shared/numerals.h"

namespace seqflow {
namespace {
namespace pairs {

using numerals::Text;

// Arrays of the results, and how many elements they have so far.
struct Rows {
  const Buffer &like;
  const int64_t most_rows, most_pairs;
  nb::object label_array = empty_array({most_rows}, like, 1, dtype_named(FLOAT64));
  nb::object qid_array = empty_array({most_rows}, like, 1, dtype_named(INT64));
  nb::object offset_array = empty_array({most_rows + 1}, like, 1, dtype_named(INT32));
  nb::object id_array = empty_array({most_pairs}, like, 1, dtype_named(INT64));
  nb::object value_array = empty_array({most_pairs}, like, 1, dtype_named(FLOAT32));
  Buffer label_view{label_array, NUMERIC, true}, qid_view{qid_array, NUMERIC, true};
  Buffer offset_view{offset_array, NUMERIC, true}, id_view{id_array, NUMERIC, true};
  Buffer value_view{value_array, NUMERIC, true};
  int64_t rows = 0, pairs = 0;

  template <class T>
  static T *of(Buffer &view) {
    return reinterpret_cast<T *>(view.data());
  }

  // The row of the line at text.at; false where it is none.
  bool read(Text &text, bool has_qid, int64_t least) {
    if (rows == most_rows) return false;
    int64_t qid = 0;
    if (!text.number(of<double>(label_view)[rows]) || !text.ends_word()) return false;
    text.skip_blanks();
    if (has_qid && (!text.skip("qid:", 4) || !text.integer(qid) || !text.ends_word())) return false;
    of<int64_t>(qid_view)[rows] = qid;
    for (text.skip_blanks(); !text.ends_line(); text.skip_blanks(), ++pairs) {
      int64_t id = 0;
      if (pairs == most_pairs || !text.integer(id) || id < least || !text.skip(":", 1)) return false;
      of<int64_t>(id_view)[pairs] = id - least;
      if (!text.number(of<float>(value_view)[pairs]) || !text.ends_word()) return false;
    }
    of<int32_t>(offset_view)[++rows] = static_cast<int32_t>(pairs);
    return true;
  }

  bool read_all(Text text, bool has_qid, int64_t least) {
    of<int32_t>(offset_view)[0] = 0;
    for (; text.at < text.end; text.skip_line()) {
      text.skip_blanks();
      if (!text.ends_line() && !read(text, has_qid, least)) return false;
    }
    return true;
  }
};

nb::object parse_pairs(nb::handle data, bool has_qid, bool one_based) {
  const Buffer bytes(data);
  if (bytes.type() != UINT8 || !dtype_of(data).equal(dtype_named(UINT8)) || bytes.rank() != 1) decline();
  const uint8_t *const first = bytes.data(), *const end = first + bytes.bytes();
  if (bytes.bytes() == 0 || end[-1] != '\n' || bytes.bytes() > INT32_MAX) return nb::none();
  int64_t lines = 0, colons = 0;
  for (const uint8_t *at = first; at < end; ++at) {
    lines += *at == '\n';
    colons += *at == ':';
  }
  Rows found{bytes, lines, colons};
  bool good;
  {
    const Unlocked unlocked(bytes.bytes());
    good = found.read_all(Text{first, end}, has_qid, one_based);
  }
  if (!good) return nb::none();
  const nb::slice rows(found.rows), pairs(found.pairs), offsets(found.rows + 1);
  return nb::make_tuple(found.label_array[rows], found.qid_array[rows], found.id_array[pairs],
                        found.value_array[pairs], found.offset_array[offsets]);
}

}  // namespace pairs
}  // namespace

void bind_pairs(nb::module_ &module) { bind_kernel(module, "parse_pairs", pairs::parse_pairs); }

}  // namespace seqflow
