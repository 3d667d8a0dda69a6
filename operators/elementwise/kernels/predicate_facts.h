// What the file of a predicate (predicate/*-inl.h) says about its op.
#pragma once

#include "framework/base/static_text.h"

namespace skiff {

struct PredicateFacts {
  StaticText type;
  StaticText doc;
};

}  // namespace skiff
