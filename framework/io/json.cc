// nlohmann's parser doesn't recurse, but what prints and copies its values does, and it takes a
// zero byte for the end and a key twice. So those are refused before or while it parses.
#include "framework/io/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace skiff {

using Json = nlohmann::json;

namespace {

[[noreturn]] void RefuseAt(size_t byte, const std::string& source, ErrorCode code) {
  Throw(code, source, ": byte ", byte, ": expected JSON");
}

}  // namespace

Json ParseJson(std::string_view text, const std::string& source, ErrorCode code, int levels,
               const KeepsMember& keeps) {
  const size_t zero = text.find('\0');
  if (zero != std::string_view::npos) RefuseAt(zero, source, code);
  std::vector<std::set<std::string>> keys;  // by the depth of their object
  const auto see = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= levels) {
        Throw(code, source, ": JSON nested deeper than ", levels, " levels");
      }
      keys.resize(static_cast<size_t>(depth) + 1);
      keys.back().clear();
    } else if (event == Json::parse_event_t::key) {
      // `depth` is that of the values in the object.
      const auto& key = value.get_ref<const std::string&>();
      if (keeps && !keeps(depth, key)) return false;
      const bool is_new = keys[static_cast<size_t>(depth) - 1].insert(key).second;
      if (!is_new) Throw(code, source, ": \"", key, "\" is there twice");
    }
    return true;
  };
  try {
    return Json::parse(text, see);
  } catch (const Json::parse_error& error) {
    // The parser counts from 1.
    RefuseAt(std::max<size_t>(error.byte, 1) - 1, source, code);
  } catch (const Json::out_of_range&) {
    // The parser doesn't say where.
    Throw(code, source, ": a number that no type holds");
  }
}

std::string QuotedJson(const Json& value) {
  constexpr size_t kQuoted = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kQuoted) text = text.substr(0, kQuoted) + " ...";
  return text;
}

std::optional<int64_t> JsonInteger(const Json& value) {
  const bool fits =
      value.is_number_unsigned() ? value.get<uint64_t>() <= INT64_MAX : value.is_number_integer();
  if (!fits) return {};
  return value.get<int64_t>();
}

}  // namespace skiff
