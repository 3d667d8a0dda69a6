// What the file of a comparison (comparison/*-inl.h) says about its op.
#pragma once

#include "framework/base/static_text.h"

namespace skiff {

struct ComparisonFacts {
  StaticText type;
  StaticText doc;
  // Whether the op combines truth values, as logical_and does: Fluid gives such ops no `axis` and
  // no `force_cpu`.
  bool is_logical = false;
};

}  // namespace skiff
