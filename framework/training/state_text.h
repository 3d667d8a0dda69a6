// Reads numbers from the text values of a checkpoint's state, as FormatShortest and std::to_string
// write them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace skiff::training {

// Each returns the value of `name`. Throws an Error (kDataLoss) that names it if there is none, or
// if it isn't a number.
const std::string& TextOf(const std::map<std::string, std::string>& state, const std::string& name);
double NumberOf(const std::map<std::string, std::string>& state, const std::string& name);
int64_t IntegerOf(const std::map<std::string, std::string>& state, const std::string& name);

}  // namespace skiff::training
