// Each spelling of docs/coming_from_pytorch.md builds, with the inputs that the page lists.
#include <gtest/gtest.h>

#include "skiff/skiff.h"
#include "tests/framework/builder/builder_fixture.h"

namespace skiff {
namespace {

class ComingFromPyTorch : public BuilderTest {
 protected:
  // A program that trains, for averages of parameters.
  ComingFromPyTorch() { optimizer::Sgd().Minimize(layers::Mean(layers::Fc(x, 1))); }

  void Expect(const Variable& result) {
    EXPECT_TRUE(result.defined());
    EXPECT_NE(main_.root()->FindLocalVar(result), nullptr);
  }
  // What isn't one Variable: states, optimizers, averages.
  template <typename Made>
  void Expect(const Made& /*made*/) {}

  Variable x = layers::Data("x", {2, 8});
  Variable y = layers::Data("y", {2, 8});
  Variable z = layers::Data("z", {2, 8});
  Variable score = layers::Data("score", {2, 1});
  Variable rival = layers::Data("rival", {2, 1});
  Variable answer = layers::Data("answer", {2, 1});
  Variable label = layers::Data("label", {2}, DType::kInt64);
  Variable signal = layers::Data("signal", {2, 4, 6});
  Variable image = layers::Data("image", {2, 4, 6, 6});
  Variable volume = layers::Data("volume", {2, 4, 6, 6, 6});
  Variable words = layers::Data("words", {2, 6, 8});
  Variable steps = layers::Data("steps", {6, 2, 8});
  Variable ids = layers::Data("ids", {2, 6}, DType::kInt64);
};

#include "tests/docs/spellings.inc"

}  // namespace
}  // namespace skiff
