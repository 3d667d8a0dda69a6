#include "operators/tensor/kernels/tensor_text.h"

#include <algorithm>
#include <string_view>

#include "framework/base/str_cat.h"
#include "operators/common/half.h"

namespace skiff {
namespace {

// Calls write(text) for the parts of the text.
template <typename Write>
void ForTexts(const Tensor& tensor, int64_t limit, const Write& write) {
  const int64_t all = tensor.element_count();
  const int64_t count = limit < 0 ? all : std::min(limit, all);
  write("[");
  VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, Float16, BFloat16, float, double>(
      tensor.dtype(), "text of a tensor", [&]<typename T>(T) {
        const T* data = tensor.data<T>();
        for (int64_t i = 0; i < count; ++i) {
          if (i > 0) write(" ");
          write(TextPiece(static_cast<WideType<T>>(data[i])).text());
        }
      });
  write("]");
}

}  // namespace

void WriteElements(const Tensor& tensor, int64_t limit, std::FILE* stream) {
  ForTexts(tensor, limit,
           [stream](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stream); });
}

std::string ElementsAsText(const Tensor& tensor, int64_t limit) {
  std::string all;
  ForTexts(tensor, limit, [&all](std::string_view text) { all += text; });
  return all;
}

}  // namespace skiff
