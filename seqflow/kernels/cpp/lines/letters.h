// Letters of texts, a vector at a time: counted, copied up to one that has a meaning, and checked to be UTF-8.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// What is in some lines. A carriage return before a newline is not counted.
struct Survey {
  int64_t newlines, letters, returns;  // `letters`: how often a given letter is there
  bool is_ascii;
};

// Letters that end a copy: three, which may be the same, and all below `low`. As one number: bytes that were just
// written one by one are slow to read together.
using Stops = uint32_t;
constexpr Stops stops_of(uint8_t first, uint8_t second, uint8_t third, uint8_t low) {
  return first | second << 8 | third << 16 | static_cast<Stops>(low) << 24;
}

constexpr int64_t COPY_ROOM = 64;  // bytes that a copy may write after the last one that counts

struct LettersKernels {
  Survey (*survey)(const uint8_t *at, const uint8_t *end, uint8_t letter);
  // Copy the letters from `at` up to one of `stops`, or up to `stop`; returns where it ended. Reads no byte from `end` on.
  const uint8_t *(*copy_until)(const uint8_t *at, const uint8_t *stop, const uint8_t *end, Stops stops, uint8_t *to);
  bool (*is_utf8)(const uint8_t *at, const uint8_t *end);
};
SEQFLOW_TABLE(LettersKernels, letters_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

using Letters = Vector<uint8_t, VECTOR_BYTES>;

// The letters from `at`, and 0 in place of those from `end` on.
inline Letters load_letters(const uint8_t *at, const uint8_t *end) {
  Letters found = {};
  if (end - at >= VECTOR_BYTES)
    memcpy(&found, at, VECTOR_BYTES);
  else
    memcpy(&found, at, end - at);
  return found;
}

template <class Mask>
inline uint64_t bits_of(Mask mask) {
  return lane_bits<int8_t, VECTOR_BYTES>((Vector<int8_t, VECTOR_BYTES>)mask);
}

inline Survey survey(const uint8_t *at, const uint8_t *end, uint8_t letter) {
  Survey found = {};
  Letters any = {};
  uint64_t after_return = 0;  // 1 where the last letter was a carriage return
  for (; at < end; at += VECTOR_BYTES) {
    const Letters text = load_letters(at, end);
    const uint64_t newlines = bits_of(text == '\n'), returns = bits_of(text == '\r');
    any |= text;
    found.newlines += __builtin_popcountll(newlines);
    found.letters += __builtin_popcountll(bits_of(text == letter));
    if (returns | after_return) {
      found.returns += __builtin_popcountll(returns) - __builtin_popcountll(newlines & (returns << 1 | after_return));
      after_return = returns >> (VECTOR_BYTES - 1);
    }
  }
  found.is_ascii = bits_of((any & 0x80) != 0) == 0;
  return found;
}

inline const uint8_t *copy_until(const uint8_t *at, const uint8_t *stop, const uint8_t *end, Stops stops, uint8_t *to) {
  const auto letter = [stops](int at) { return static_cast<uint8_t>(stops >> 8 * at); };
  const Letters first = Letters{} + letter(0), second = Letters{} + letter(1), third = Letters{} + letter(2);
  const Letters low = Letters{} + letter(3);
  for (; at < stop; at += VECTOR_BYTES, to += VECTOR_BYTES) {
    const Letters text = load_letters(at, end);
    memcpy(to, &text, VECTOR_BYTES);
    const uint64_t hits = bits_of((text == first) | (text == second) | (text == third) | (text < low));
    if (hits) {
      at += __builtin_ctzll(hits);
      break;
    }
  }
  return at < stop ? at : stop;
}

#if defined(__AVX2__)
// Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte" (2021). Each table gives the faults that
// half of a byte allows; two bytes have those that all three tables allow.
constexpr char TOO_SHORT = 1, TOO_LONG = 2, OVERLONG_3 = 4, TOO_LARGE = 8, SURROGATE = 16, OVERLONG_2 = 32;
constexpr char TOO_LARGE_1000 = 64, OVERLONG_4 = 64, TWO_CONTINUE = static_cast<char>(128);
constexpr char ANY_LOW = TOO_SHORT | TOO_LONG | TWO_CONTINUE, LARGE_LOW = ANY_LOW | TOO_LARGE | TOO_LARGE_1000;
constexpr char CONTINUES = TOO_LONG | OVERLONG_2 | TWO_CONTINUE;

inline __m256i look_up(__m128i table, __m256i places) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), places);
}

inline __m256i high_halves(__m256i bytes) { return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15)); }

// Faults of a step, and of what the step before leaves open.
inline __m256i faults_of(__m256i bytes, __m256i before) {
  const __m128i first_high = _mm_setr_epi8(
      TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TWO_CONTINUE, TWO_CONTINUE,
      TWO_CONTINUE, TWO_CONTINUE, TOO_SHORT | OVERLONG_2, TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE,
      TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4);
  const __m128i first_low = _mm_setr_epi8(
      ANY_LOW | OVERLONG_3 | OVERLONG_2 | OVERLONG_4, ANY_LOW | OVERLONG_2, ANY_LOW, ANY_LOW, ANY_LOW | TOO_LARGE,
      LARGE_LOW, LARGE_LOW, LARGE_LOW, LARGE_LOW, LARGE_LOW, LARGE_LOW, LARGE_LOW, LARGE_LOW, LARGE_LOW | SURROGATE,
      LARGE_LOW, LARGE_LOW);
  const __m128i second_high = _mm_setr_epi8(
      TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
      CONTINUES | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4, CONTINUES | OVERLONG_3 | TOO_LARGE,
      CONTINUES | SURROGATE | TOO_LARGE, CONTINUES | SURROGATE | TOO_LARGE, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT);
  const __m256i middle = _mm256_permute2x128_si256(before, bytes, 0x21);
  const __m256i back_1 = _mm256_alignr_epi8(bytes, middle, 15), back_2 = _mm256_alignr_epi8(bytes, middle, 14);
  const __m256i back_3 = _mm256_alignr_epi8(bytes, middle, 13);
  const __m256i low = _mm256_and_si256(back_1, _mm256_set1_epi8(15));
  const __m256i of_two = _mm256_and_si256(_mm256_and_si256(look_up(first_high, high_halves(back_1)), look_up(first_low, low)),
                                          look_up(second_high, high_halves(bytes)));
  // the third and fourth byte of a letter must continue it: that is what TWO_CONTINUE says of them
  const __m256i third = _mm256_subs_epu8(back_2, _mm256_set1_epi8(0x60)), fourth = _mm256_subs_epu8(back_3, _mm256_set1_epi8(0x70));
  const __m256i must = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(TWO_CONTINUE));
  return _mm256_xor_si256(must, of_two);
}

inline bool is_utf8(const uint8_t *at, const uint8_t *end) {
  __m256i faults = _mm256_setzero_si256(), before = faults;
  for (bool is_last = false; !is_last; at += 32) {
    is_last = end - at < 32;  // zeros after the last byte show what it leaves open
    __m256i bytes = _mm256_setzero_si256();
    memcpy(&bytes, at, is_last ? end - at : 32);
    faults = _mm256_or_si256(faults, faults_of(bytes, before));
    before = bytes;
  }
  return _mm256_testz_si256(faults, faults);
}
#else
inline bool is_utf8(const uint8_t *at, const uint8_t *end) {
  while (at < end) {
    const uint8_t first = *at++;
    if (first < 0x80) continue;
    const int64_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || end - at < more) return false;
    // the second byte rules out longer forms than needed, surrogates, and what is beyond 0x10ffff
    const uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (*at < least || *at > most) return false;
    for (int64_t i = 1; i < more; ++i)
      if ((at[i] & 0xc0) != 0x80) return false;
    at += more;
  }
  return true;
}
#endif

extern const LettersKernels letters_kernels = {survey, copy_until, is_utf8};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
