// A program with feeds, for tests of layers.
#pragma once

#include "framework/builder/data.h"
#include "tests/framework/builder/builder_fixture.h"

namespace skiff {

class LayersTest : public BuilderTest {
 protected:
  Variable image_ = layers::Data("image", {-1, 3, 8, 8});
  Variable rows_ = layers::Data("rows", {-1, 5});
  Variable label_ = layers::Data("label", {-1, 1}, DType::kInt64);
};

}  // namespace skiff
