#include "framework/builder/param_settings.h"

#include <charconv>

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr std::string_view kL1Prefix = "l1_decay ";
constexpr std::string_view kL2Prefix = "l2_decay ";

}  // namespace

std::string RegularizerToText(const Regularizer& regularizer) {
  if (!regularizer.defined()) return "";
  char digits[64];
  // The shortest text that reads back as the same float.
  const auto end = std::to_chars(digits, digits + sizeof(digits), regularizer.coefficient).ptr;
  const bool is_l1 = regularizer.kind == Regularizer::Kind::kL1;
  return StrCat(is_l1 ? kL1Prefix : kL2Prefix, std::string_view(digits, end));
}

Regularizer RegularizerFromText(std::string_view text) {
  if (text.empty()) return {};
  const bool is_l1 = text.starts_with(kL1Prefix);
  float coefficient = 0.0f;
  bool parsed = is_l1 || text.starts_with(kL2Prefix);
  if (parsed) {
    const std::string_view digits = text.substr(kL1Prefix.size());
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), coefficient);
    parsed = result.ec == std::errc() && result.ptr == digits.data() + digits.size();
  }
  SKIFF_ENFORCE(parsed, kInvalidArgument, "\"", text,
                "\" is no regularizer, expected \"l1_decay\" or \"l2_decay\" and a number");
  return is_l1 ? L1Decay(coefficient) : L2Decay(coefficient);
}

}  // namespace skiff
