#include "framework/base/static_text.h"

#include <functional>
#include <mutex>
#include <set>

#include "framework/base/error.h"

namespace skiff {
namespace {

std::string_view Kept(std::string_view text) {
  static std::mutex mutex;
  // Never destroyed: other static objects may use the texts until the process ends.
  static auto* texts = new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  const auto found = texts->find(text);
  return found != texts->end() ? *found : *texts->emplace(text).first;
}

}  // namespace

StaticText::StaticText(std::string_view text) : std::string_view(Kept(text)) {}

std::string_view StaticText::TextAt(const char* text) {
  SKIFF_ENFORCE(text != nullptr, kInvalidArgument,
                "a text of a definition is a null pointer, expected a string");
  return text;
}

}  // namespace skiff
