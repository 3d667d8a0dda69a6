#include "operators/tensor/tensor_text_shared.h"

#include <algorithm>
#include <cinttypes>
#include <type_traits>

namespace skiff {
namespace {

// A number as a C++ stream shows it.
struct NumberText {
  char text[32];
};

template <typename T>
NumberText TextOf(T value) {
  NumberText number;
  if constexpr (std::is_floating_point_v<T>) {
    std::snprintf(number.text, sizeof(number.text), "%g", static_cast<double>(value));
  } else {
    std::snprintf(number.text, sizeof(number.text), "%" PRId64, static_cast<int64_t>(value));
  }
  return number;
}

// Calls write(text) for the parts of the text.
template <typename Write>
void ForTexts(const Tensor& tensor, int64_t limit, const Write& write) {
  const int64_t all = tensor.element_count();
  const int64_t count = limit < 0 ? all : std::min(limit, all);
  write("[");
  VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, float, double>(
      tensor.dtype(), "text of a tensor", [&]<typename T>(T) {
        const T* data = tensor.data<T>();
        for (int64_t i = 0; i < count; ++i) {
          if (i > 0) write(" ");
          write(TextOf(data[i]).text);
        }
      });
  write("]");
}

}  // namespace

void WriteElements(const Tensor& tensor, int64_t limit, std::FILE* stream) {
  ForTexts(tensor, limit, [stream](const char* text) { std::fputs(text, stream); });
}

std::string ElementsAsText(const Tensor& tensor, int64_t limit) {
  std::string all;
  ForTexts(tensor, limit, [&all](const char* text) { all += text; });
  return all;
}

}  // namespace skiff
