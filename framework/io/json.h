// JSON that anybody may have written, and how messages quote it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/error.h"

namespace skiff {

// Returns whether ParseJson keeps the member of an object with this key. `depth`: of the member: 1
// in the outermost object.
using KeepsMember = std::function<bool(int depth, const std::string& key)>;

// Returns the value that a text stands for. A byte order mark before it is no part of it. Throws an
// Error of this code that begins with `source`: with the byte, counted from 0, where the text is no
// JSON; for a zero byte; for a key that an object has twice, since readers differ in which of them
// counts; and for objects and lists nested in more than `levels` levels, since whatever prints or
// copies such a value takes a call for each level, which may end the stack. Members that `keeps`
// refuses take no memory, and may be there twice.
nlohmann::json ParseJson(std::string_view text, const std::string& source,
                         ErrorCode code = ErrorCode::kDataLoss, int levels = 32,
                         const KeepsMember& keeps = nullptr);

// Returns a value as a message quotes it: a long one is cut.
std::string QuotedJson(const nlohmann::json& value);

// Returns the number if the value is an integer that int64 holds.
std::optional<int64_t> JsonInteger(const nlohmann::json& value);

}  // namespace skiff
