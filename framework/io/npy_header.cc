#include "framework/io/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace skiff {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
// Nine dims take less than 200 bytes. NumPy itself refuses texts of more than 10000 bytes.
constexpr int64_t kTextLimitBytes = 10000;
constexpr int64_t kAlignment = 64;

struct NpyType {
  std::string_view code;  // of a kind and its bytes
  char letter;            // means the same
  DType dtype;
};
constexpr std::array<NpyType, 9> kTypes{{
    {"b1", '?', DType::kBool},
    {"i1", 'b', DType::kInt8},
    {"u1", 'B', DType::kUint8},
    {"i2", 'h', DType::kInt16},
    {"i4", 'i', DType::kInt32},
    {"i8", 'q', DType::kInt64},
    {"f2", 'e', DType::kFloat16},
    {"f4", 'f', DType::kFloat32},
    {"f8", 'd', DType::kFloat64},
}};

// Returns the dtype that `numpy.dtype(descr)` has, without its byte order; none if it isn't
// Skiff's. NumPy writes an order and a code, '|' where single bytes have no order, but also reads
// other forms. Those that mean another dtype on another machine ('l', 'int') are left out.
std::optional<DType> FindType(std::string_view descr) {
  const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) < 4;
  const std::string_view code = descr.substr(has_order ? 1 : 0);
  for (const NpyType& type : kTypes) {
    const bool is_name = !has_order && descr == DTypeName(type.dtype);
    const bool is_letter = code.size() == 1 && code[0] == type.letter;
    if (is_name || is_letter || code == type.code) return type.dtype;
  }
  return {};
}

// Parses the dict, and nothing else that Python would accept. NumPy evaluates the text as a
// literal; a parser of just these three keys has less to go wrong with on hostile files.
class HeaderParser {
 public:
  // `position` is the start of the text in the source, for messages.
  HeaderParser(std::string_view text, int64_t position, const ByteSource& source)
      : text_(text), position_(position), source_(source) {}

  NpyHeader Parse() {
    Expect('{');
    while (!Accept('}')) {
      ParseEntry();
      if (Accept(',')) continue;
      Expect('}');
      break;
    }
    SkipSpaces();
    if (next_ != text_.size()) Fail("expected the end of the header");
    if (!has_dtype_ || !has_order_ || !has_shape_) {
      Fail("expected the keys descr, fortran_order and shape");
    }
    return std::move(header_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void Fail(const Args&... args) const {
    source_.ThrowCorrupt(position_ + static_cast<int64_t>(next_),
                         "header of a NumPy array: ", args...);
  }

  void SkipSpaces() { next_ = std::min(text_.find_first_not_of(" \t\r\n\f", next_), text_.size()); }

  bool Accept(char expected) {
    SkipSpaces();
    if (next_ >= text_.size() || text_[next_] != expected) return false;
    ++next_;
    return true;
  }

  void Expect(char expected) {
    if (!Accept(expected)) Fail("expected '", expected, "'");
  }

  std::string_view ParseString() {
    SkipSpaces();
    // Python 2 writes texts of Unicode so.
    if (next_ < text_.size() && text_[next_] == 'u') ++next_;
    const char quote = next_ < text_.size() ? text_[next_] : '\0';
    if (quote != '\'' && quote != '"') Fail("expected a string");
    const size_t end = text_.find(quote, next_ + 1);
    if (end == std::string_view::npos) Fail("a string doesn't end");
    const std::string_view value = text_.substr(next_ + 1, end - next_ - 1);
    next_ = end + 1;
    return value;
  }

  void ParseEntry() {
    const std::string_view key = ParseString();
    Expect(':');
    if (key == "descr" && !std::exchange(has_dtype_, true)) return ParseDescr();
    if (key == "fortran_order" && !std::exchange(has_order_, true)) return ParseOrder();
    if (key == "shape" && !std::exchange(has_shape_, true)) return ParseShape();
    Fail("unexpected key \"", key, "\"");
  }

  void ParseDescr() {
    SkipSpaces();
    const bool structured = next_ < text_.size() && text_[next_] == '[';
    SKIFF_ENFORCE(!structured, kUnimplemented, source_.name(),
                  ": NumPy array of structures: not supported");
    const std::string_view descr = ParseString();
    const std::optional<DType> dtype = FindType(descr);
    SKIFF_ENFORCE(dtype.has_value(), kUnimplemented, source_.name(), ": NumPy array of type \"",
                  descr, "\" is not supported");
    header_.dtype = *dtype;
    header_.big_endian = descr.starts_with('>');
  }

  void ParseOrder() {
    SkipSpaces();
    const std::string_view rest = text_.substr(next_);
    header_.fortran_order = rest.starts_with("True");
    if (!header_.fortran_order && !rest.starts_with("False")) {
      Fail("fortran_order: expected True or False");
    }
    next_ += header_.fortran_order ? 4 : 5;
  }

  int64_t ParseDim() {
    SkipSpaces();
    int64_t dim = -1;
    const char* begin = text_.data() + next_;
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), dim);
    if (error != std::errc() || dim < 0) Fail("expected a dim from 0 to 2^63 - 1");
    next_ += static_cast<size_t>(stop - begin);
    // Python 2 marks its long integers.
    if (next_ < text_.size() && text_[next_] == 'L') ++next_;
    return dim;
  }

  void ParseShape() {
    Expect('(');
    bool comma = true;
    while (!Accept(')')) {
      if (!comma) Fail("expected ',' or ')'");
      header_.dims.push_back(ParseDim());
      comma = Accept(',');
    }
    // In Python, (3) is a number and (3,) a tuple.
    if (header_.dims.size() == 1 && !comma) Fail("a shape of one dim needs a comma");
  }

  std::string_view text_;
  int64_t position_;
  const ByteSource& source_;
  size_t next_ = 0;
  NpyHeader header_;
  bool has_dtype_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

int64_t ReadTextLength(ByteSource* source) {
  const int64_t position = source->offset();
  const auto major = source->ReadNumber<uint8_t>("version of a NumPy array");
  const auto minor = source->ReadNumber<uint8_t>("version of a NumPy array");
  if (major < 1 || major > 3 || minor != 0) {
    source->ThrowCorrupt(position, "version ", static_cast<int>(major), ".",
                         static_cast<int>(minor), " of a NumPy array, expected 1.0, 2.0 or 3.0");
  }
  // Version 1.0 has 16 bits for the length, later versions 32. The text is the same, except that
  // version 3.0 allows UTF-8 names of fields, which only structures have.
  const int64_t length = major == 1 ? int64_t{source->ReadNumber<uint16_t>("length of the header")}
                                    : int64_t{source->ReadNumber<uint32_t>("length of the header")};
  if (length > kTextLimitBytes) {
    source->ThrowCorrupt(position, "header of ", length, " bytes, expected at most ",
                         kTextLimitBytes);
  }
  return length;
}

std::string ShapeText(const Shape& shape) {
  std::string text = "(" + Join(shape.dims(), ", ");
  return text + (shape.rank() == 1 ? ",)" : ")");
}

std::string DescrOf(DType dtype) {
  const auto* const type = std::ranges::find(kTypes, dtype, &NpyType::dtype);
  SKIFF_ENFORCE(type != kTypes.end(), kUnimplemented, "NumPy has no dtype for ", dtype);
  return StrCat(SizeOf(dtype) == 1 ? '|' : '<', type->code);
}

}  // namespace

NpyHeader ReadNpyHeader(ByteSource* source) {
  const int64_t begin = source->offset();
  const std::string magic = source->ReadString(kMagic.size(), "magic of a NumPy array");
  if (magic != kMagic) source->ThrowCorrupt(begin, "no NumPy array: expected \"\\x93NUMPY\"");
  const int64_t length = ReadTextLength(source);
  const int64_t position = source->offset();
  const std::string text = source->ReadString(length, "header of a NumPy array");
  return HeaderParser(text, position, *source).Parse();
}

std::string NpyHeaderBytes(DType dtype, const Shape& shape) {
  // The very text that NumPy writes, including the comma at the end.
  std::string text = StrCat("{'descr': '", DescrOf(dtype),
                            "', 'fortran_order': False, 'shape': ", ShapeText(shape), ", }");
  const auto head_bytes = static_cast<int64_t>(kMagic.size()) + 4;
  int64_t total = head_bytes + static_cast<int64_t>(text.size()) + 1;
  // As the format demands, so that the elements can be mapped into memory aligned.
  total = (total + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(static_cast<size_t>(total - head_bytes - 1), ' ');
  text += '\n';
  std::string bytes(kMagic);
  bytes += std::string_view("\x01\x00", 2);
  AppendNumber(static_cast<uint16_t>(text.size()), &bytes);
  return bytes + text;
}

}  // namespace skiff
