// Rules that give tensors other names, such as those of another framework's model.
#pragma once

#include <string>

namespace skiff {

enum class NameChange {
  kRename,
  // The tensor is a matrix [rows, columns], and its transpose is wanted: PyTorch's Linear has the
  // transpose of the matrix of an Fc.
  kTranspose,
  // Nobody needs the tensor.
  kDrop,
  // Another tensor gets the same name, and must have the same elements: networks may save tied
  // weights once or twice.
  kTie,
};

struct NameRule {
  // A regular expression (ECMAScript) that a whole name matches.
  std::string pattern = {};
  // The new name, in which $1, $2, … stand for the groups of the expression.
  std::string to = {};
  NameChange change = NameChange::kRename;
};

}  // namespace skiff
