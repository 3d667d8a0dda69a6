#include "framework/training/state_text.h"

#include <optional>

#include "framework/base/error.h"
#include "framework/base/number_text.h"

namespace skiff::training {
namespace {

template <typename T>
T Parsed(const std::map<std::string, std::string>& state, const std::string& name,
         const char* expected) {
  const std::string& text = TextOf(state, name);
  const std::optional<T> value = ParseNumber<T>(text);
  SKIFF_ENFORCE(value.has_value(), kDataLoss, "the checkpoint's state has ", name, " = \"", text,
                "\": expected ", expected);
  return *value;
}

}  // namespace

const std::string& TextOf(const std::map<std::string, std::string>& state,
                          const std::string& name) {
  const auto found = state.find(name);
  SKIFF_ENFORCE(found != state.end(), kDataLoss, "the checkpoint's state has no \"", name, "\"");
  return found->second;
}

double NumberOf(const std::map<std::string, std::string>& state, const std::string& name) {
  return Parsed<double>(state, name, "a number");
}

int64_t IntegerOf(const std::map<std::string, std::string>& state, const std::string& name) {
  return Parsed<int64_t>(state, name, "an integer of 64 bits");
}

std::map<std::string, std::string> PartOf(const std::map<std::string, std::string>& state,
                                          const std::string& prefix) {
  std::map<std::string, std::string> part;
  for (const auto& [name, value] : state) {
    if (name.starts_with(prefix)) part[name.substr(prefix.size())] = value;
  }
  return part;
}

}  // namespace skiff::training
