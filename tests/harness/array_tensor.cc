#include "tests/harness/array_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <limits>
#include <optional>
#include <sstream>

#include "framework/base/error.h"
#include "tests/harness/tolerance.h"

namespace skiff::harness {
namespace {

template <typename Visitor>
void VisitCaseDType(DType dtype, Visitor&& visitor) {
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(
      dtype, "op case", std::forward<Visitor>(visitor));
}

// A two-byte floating-point format with a biased exponent, written independently of the code under
// test (operators/common/half.h).
struct HalfFormat {
  int fraction_bits;
  int bias;

  uint16_t infinity() const { return static_cast<uint16_t>((2 * bias + 1) << fraction_bits); }

  // Returns the nearest number, ties to even.
  uint16_t Encode(double value) const {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return static_cast<uint16_t>(sign | (infinity() + 1));
    int bits = infinity();
    if (!std::isinf(value)) {
      const int exponent = std::max(value == 0 ? 1 - bias : std::ilogb(value), 1 - bias);
      // The fraction of a normal number includes its leading bit, which adds 1 to the exponent. The
      // same holds for a fraction that rounds up to the next power of two.
      const double fraction = std::nearbyint(std::ldexp(std::abs(value), fraction_bits - exponent));
      const double whole = std::ldexp(exponent + bias - 1, fraction_bits) + fraction;
      bits = static_cast<int>(std::min<double>(whole, bits));
    }
    return static_cast<uint16_t>(sign | bits);
  }

  double Decode(uint16_t bits) const {
    const int magnitude = bits & 0x7fff;
    const int exponent = magnitude >> fraction_bits;
    const int fraction = magnitude - (exponent << fraction_bits);
    double value = std::ldexp(fraction, 1 - bias - fraction_bits);
    if (magnitude > infinity()) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (magnitude == infinity()) {
      value = std::numeric_limits<double>::infinity();
    } else if (exponent > 0) {
      value = std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    }
    return (bits & 0x8000) != 0 ? -value : value;
  }
};

std::optional<HalfFormat> HalfFormatOf(DType dtype) {
  if (dtype == DType::kFloat16) return HalfFormat{10, 15};
  if (dtype == DType::kBFloat16) return HalfFormat{7, 127};
  return std::nullopt;
}

// Gives the offset in a tensor's layout of element `flat` of the plain tensor.
class OffsetInLayout {
 public:
  explicit OffsetInLayout(const Tensor& tensor) {
    if (tensor.layout().is_plain()) return;
    const Shape& shape = tensor.shape();
    block_ = tensor.layout().channel_block;
    channels_ = shape[1];
    inner_ = shape.element_count(2, shape.rank());
  }
  int64_t operator()(int64_t flat) const {
    if (block_ == 0) return flat;
    const int64_t position = flat % inner_;
    const int64_t channel = flat / inner_ % channels_;
    const int64_t image = flat / inner_ / channels_;
    const int64_t blocks = (channels_ + block_ - 1) / block_;
    return ((image * blocks + channel / block_) * inner_ + position) * block_ + channel % block_;
  }

 private:
  int64_t block_ = 0;  // 0: the tensor is plain
  int64_t channels_ = 0;
  int64_t inner_ = 0;
};

Layout LayoutOf(const Array& array) {
  return array.is_selected_rows() ? Layout::SelectedRows(array.height) : Layout::Plain();
}

// Calls visit(i) for the elements in unused slots.
template <typename Visitor>
void VisitUnused(const std::vector<int64_t>& rows, const Shape& shape, const Visitor& visit) {
  if (rows.empty()) return;
  const auto width = static_cast<size_t>(shape.element_count(1, shape.rank()));
  for (size_t slot = 0; slot < rows.size(); ++slot) {
    for (size_t i = 0; rows[slot] < 0 && i < width; ++i) visit(slot * width + i);
  }
}

// Copies the row numbers and the values of slots in use. Unused slots, and the padding before the
// row numbers, become 0, since their contents are undefined and must not make a comparison fail.
void CopySelectedRows(const Tensor& from, Tensor* to) {
  if (to->byte_count() == 0) return;
  std::memset(to->raw_data(), 0, static_cast<size_t>(to->byte_count()));
  std::ranges::copy(from.rows(), to->rows().begin());
  const auto row_bytes = static_cast<size_t>(from.shape().element_count(1, from.shape().rank()) *
                                             SizeOf(from.dtype()));
  for (size_t slot = 0; slot < from.rows().size(); ++slot) {
    if (from.rows()[slot] < 0 || row_bytes == 0) continue;
    std::memcpy(static_cast<char*>(to->raw_data()) + slot * row_bytes,
                static_cast<const char*>(from.raw_data()) + slot * row_bytes, row_bytes);
  }
}

// Copies between two layouts of one shape.
void CopyElements(const Tensor& from, Tensor* to) {
  const int64_t size = SizeOf(from.dtype());
  const int64_t count = from.element_count();
  const char* source = static_cast<const char*>(from.raw_data());
  char* target = static_cast<char*>(to->raw_data());
  if (from.layout().is_plain() && to->layout().is_plain()) {
    if (count > 0) std::memcpy(target, source, static_cast<size_t>(count * size));
    return;
  }
  const OffsetInLayout in_source(from);
  const OffsetInLayout in_target(*to);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(target + in_target(i) * size, source + in_source(i) * size,
                static_cast<size_t>(size));
  }
}

bool Agree(double found, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= bound;
}

double RootMeanSquare(const std::vector<double>& values) {
  double sum = 0;
  size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0.0 : std::sqrt(sum / static_cast<double>(count));
}

}  // namespace

DType DTypeIn(const Array& array, DType run_dtype) {
  return array.fixed_dtype ? array.dtype : run_dtype;
}

Tensor ToTensor(const Array& array, DType dtype) {
  SKIFF_ENFORCE(static_cast<int64_t>(array.values.size()) == array.shape.element_count(),
                kInvalidArgument, "an array of shape ", array.shape, " holds ", array.values.size(),
                " values");
  Tensor tensor(array.shape, dtype, Place::Cpu(), LayoutOf(array));
  if (!array.lod.empty()) tensor.set_lod(array.lod);
  if (array.is_selected_rows() && tensor.byte_count() > 0) {
    std::memset(tensor.raw_data(), 0, static_cast<size_t>(tensor.byte_count()));
    std::ranges::copy(array.rows, tensor.rows().begin());
  }
  if (const auto half = HalfFormatOf(dtype)) {
    auto* out = static_cast<uint16_t*>(tensor.raw_data());
    for (const double value : array.values) *out++ = half->Encode(value);
    VisitUnused(array.rows, array.shape, [&](size_t i) {
      static_cast<uint16_t*>(tensor.raw_data())[i] =
          half->Encode(std::numeric_limits<double>::quiet_NaN());
    });
    return tensor;
  }
  VisitCaseDType(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = tensor.data<T>();
    for (const double value : array.values) *out++ = static_cast<T>(value);
    if constexpr (std::numeric_limits<T>::has_quiet_NaN) {
      VisitUnused(array.rows, array.shape,
                  [&](size_t i) { tensor.data<T>()[i] = std::numeric_limits<T>::quiet_NaN(); });
    }
  });
  return tensor;
}

Array ToArray(const Tensor& tensor) {
  std::optional<Tensor> converted;
  if (!tensor.layout().is_plain()) converted = ToPlain(tensor);
  const Tensor& plain = converted ? *converted : tensor;
  Array array{.shape = tensor.shape(), .values = {}};
  array.fixed_dtype = true;
  array.dtype = tensor.dtype();
  array.lod = tensor.lod();
  array.values.resize(static_cast<size_t>(tensor.element_count()));
  if (const auto half = HalfFormatOf(tensor.dtype())) {
    const auto* in = static_cast<const uint16_t*>(plain.raw_data());
    for (double& value : array.values) value = half->Decode(*in++);
  } else {
    // A kernel may have left a bool that is neither true nor false: read bytes.
    const bool is_bool = tensor.dtype() == DType::kBool;
    VisitCaseDType(is_bool ? DType::kUint8 : tensor.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* in = static_cast<const T*>(plain.raw_data());
      for (double& value : array.values) value = static_cast<double>(*in++);
    });
  }
  if (!tensor.is_selected_rows()) return array;
  array.rows = {tensor.rows().begin(), tensor.rows().end()};
  array.height = tensor.height();
  VisitUnused(array.rows, array.shape, [&](size_t i) { array.values[i] = 0; });
  return array;
}

Tensor Cast(const Tensor& tensor, DType dtype) { return ToTensor(ToArray(tensor), dtype); }

Tensor ZerosLike(const Tensor& tensor) {
  const Layout layout = tensor.is_selected_rows() ? tensor.layout() : Layout::Plain();
  Tensor zeros(tensor.shape(), tensor.dtype(), Place::Cpu(), layout);
  if (zeros.byte_count() > 0) {
    std::memset(zeros.raw_data(), 0, static_cast<size_t>(zeros.byte_count()));
  }
  return zeros;
}

void CopyIntoLayout(const Tensor& from, Tensor* to) {
  SKIFF_ENFORCE(from.shape() == to->shape() && from.dtype() == to->dtype(), kInvalidArgument,
                "copy of ", from.dtype(), " ", from.shape(), " into ", to->dtype(), " ",
                to->shape());
  if (to->byte_count() == 0) return;
  if (from.is_selected_rows()) return CopyTensor(from, to);
  std::memset(to->raw_data(), 0, static_cast<size_t>(to->byte_count()));
  CopyElements(from, to);
}

Tensor ToPlain(const Tensor& tensor) {
  if (tensor.is_selected_rows()) {
    Tensor cleared(tensor.shape(), tensor.dtype(), Place::Cpu(), tensor.layout());
    cleared.ShareLoD(tensor.shared_lod());
    CopySelectedRows(tensor, &cleared);
    return cleared;
  }
  Tensor plain(tensor.shape(), tensor.dtype());
  plain.ShareLoD(tensor.shared_lod());
  CopyElements(tensor, &plain);
  return plain;
}

bool PaddingIsZero(const Tensor& tensor) {
  if (!tensor.layout().is_blocked()) return true;
  const int64_t size = SizeOf(tensor.dtype());
  std::vector<char> is_element(static_cast<size_t>(tensor.byte_count()), 0);
  const OffsetInLayout in_tensor(tensor);
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    std::fill_n(is_element.begin() + in_tensor(i) * size, size, char{1});
  }
  const char* bytes = static_cast<const char*>(tensor.raw_data());
  for (size_t i = 0; i < is_element.size(); ++i) {
    if (is_element[i] == 0 && bytes[i] != 0) return false;
  }
  return true;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  const bool same_rows =
      a.is_selected_rows() == b.is_selected_rows() && a.layout().height == b.layout().height;
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype() || !same_rows) return false;
  const size_t bytes = static_cast<size_t>(a.byte_count());
  return bytes == 0 || std::memcmp(a.raw_data(), b.raw_data(), bytes) == 0;
}

std::string LoDText(const LoD& lod) {
  std::string text;
  for (const auto& offsets : lod) text += StrCat("[", Join(offsets, ", "), "]");
  return text;
}

std::string IndexName(const Shape& shape, int64_t flat) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<size_t>(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return StrCat("[", Join(index, ", "), "]");
}

std::string FirstDifference(const Array& found, const Array& expected, double tolerance) {
  if (!(found.shape == expected.shape)) {
    return StrCat("found shape ", found.shape, ", expected ", expected.shape);
  }
  if (found.values.size() != expected.values.size()) {
    return StrCat("found ", found.values.size(), " values, expected ", expected.values.size());
  }
  if (found.rows != expected.rows || found.height != expected.height) {
    return StrCat("found rows ", Join(found.rows, ", "), " of ", found.height, ", expected ",
                  Join(expected.rows, ", "), " of ", expected.height);
  }
  if (!expected.lod.empty() && found.lod != expected.lod) {
    return StrCat("found the offsets ", LoDText(found.lod), ", expected ", LoDText(expected.lod));
  }
  const double size = std::max(RootMeanSquare(expected.values), Tolerances::kFloor);
  for (size_t i = 0; i < found.values.size(); ++i) {
    const double bound = tolerance * std::max(std::abs(expected.values[i]), size);
    if (Agree(found.values[i], expected.values[i], bound)) continue;
    std::ostringstream text;
    text << std::setprecision(std::numeric_limits<double>::max_digits10) << "index "
         << IndexName(found.shape, static_cast<int64_t>(i)) << ": found " << found.values[i]
         << ", expected " << expected.values[i] << " (tolerance " << bound << ")";
    return text.str();
  }
  return {};
}

}  // namespace skiff::harness
