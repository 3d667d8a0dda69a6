#include "framework/precision/half_report.h"

#include <map>
#include <string_view>

#include "framework/base/dtype.h"
#include "framework/base/str_cat.h"

namespace skiff {
namespace {

// What the ops of a reason are called in Text.
std::string_view GroupOf(Float32Reason reason) {
  switch (reason) {
    case Float32Reason::kRule:
      return "by their rules";
    case Float32Reason::kInput:
      return "like their inputs";
    case Float32Reason::kResult:
      return "like their results";
    case Float32Reason::kNamed:
      return "by their attributes";
    case Float32Reason::kKept:
      return "as you asked";
  }
  return "";
}

std::string WhyOf(const HalfReport::Float32Op& op) {
  switch (op.reason) {
    case Float32Reason::kRule:
      return "its rule is to compute in float32";
    case Float32Reason::kInput:
      return StrCat("its input \"", op.name, "\" is float32 and none of the others is larger");
    case Float32Reason::kResult:
      return StrCat("its result \"", op.name, "\" must be float32");
    case Float32Reason::kNamed:
      return StrCat("its attribute ", op.name, " says so");
    case Float32Reason::kKept:
      return "keep_float32 has it";
  }
  return "";
}

}  // namespace

std::string HalfReport::Text() const {
  std::map<Float32Reason, std::map<std::string, int64_t>> groups;
  for (const Float32Op& op : float32_ops) ++groups[op.reason][op.type];
  std::vector<std::string> texts;
  for (const auto& [reason, counts] : groups) {
    std::vector<std::string> types;
    for (const auto& [type, count] : counts) types.push_back(StrCat(type, " (", count, ")"));
    texts.push_back(StrCat(GroupOf(reason), ": ", Join(types, ", ")));
  }
  const auto all_ops = half_ops + static_cast<int64_t>(float32_ops.size());
  const auto all_parameters = half_parameters + static_cast<int64_t>(float32_parameters.size());
  return StrCat(dtype, ": ", half_ops, " of ", all_ops, " ops, ", half_parameters, " of ",
                all_parameters, " parameters, ", casts.size(), " casts",
                texts.empty() ? "" : "; float32 ", Join(texts, "; "));
}

std::string HalfReport::Details() const {
  std::vector<std::string> lines = {Text()};
  for (const Float32Op& op : float32_ops) {
    lines.push_back(StrCat("float32: ", op.type, ", since ", WhyOf(op)));
  }
  for (const Float32Parameter& parameter : float32_parameters) {
    const std::string why =
        parameter.reader.empty() ? "" : StrCat(", since ", parameter.reader, " reads it so");
    lines.push_back(StrCat("float32: parameter \"", parameter.name, "\"", why));
  }
  for (const Cast& cast : casts) {
    lines.push_back(StrCat("cast: \"", cast.variable, "\" to ", cast.to, " for ", cast.for_op));
  }
  return StrCat(Join(lines, "\n"), "\n");
}

}  // namespace skiff
