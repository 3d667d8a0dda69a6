// Reads from a checkpoint's state: its parts, and numbers in the form in which FormatShortest and
// std::to_string write them.
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

// Returns the entries of a state whose names start with `prefix`, without the prefix.
std::map<std::string, std::string> PartOf(const std::map<std::string, std::string>& state,
                                          const std::string& prefix);

}  // namespace skiff::training
