// The registry of every operator. skiff/op.h says what a registry consists of.
#pragma once

namespace skiff {

class OpRegistry;

// Returns the registry of every operator of Skiff. The first call makes it; it is never destroyed.
// Users add ops to the registry before they build programs. Defined in
// //operators:default_registry.
OpRegistry& DefaultOpRegistry();

}  // namespace skiff
