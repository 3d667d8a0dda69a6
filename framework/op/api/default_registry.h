// The registry of every operator. skiff/op.h says what it consists of.
#pragma once

namespace skiff {

class OpRegistry;

// Returns the registry of every operator of Skiff. The first call makes it; it is never destroyed.
// Users add their own ops to it before they build programs. Defined in
// //operators:default_registry.
OpRegistry& DefaultOpRegistry();

}  // namespace skiff
