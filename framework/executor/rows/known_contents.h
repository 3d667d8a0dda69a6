// Finds elements of values that are known when a plan is made: constants, and elements that follow
// from shapes. Shapes and axes that a program computes (SlotDef::attribute) are such elements.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns whether shape, dtype and bytes of two dense tensors on the CPU are equal.
bool HaveSameElements(const Tensor& a, const Tensor& b);

class KnownContents {
 public:
  using Contents = std::shared_ptr<const Tensor>;
  // Returns the contents of a feed. Returns nullptr if the contents depend on data, and sets `why`
  // to the source of the data.
  using OfFeed = std::function<Contents(ValueId feed, std::string* why)>;

  // Both must outlive the object. Without `of_feed`, nothing is known of feeds.
  KnownContents(const OpRegistry& registry, Plan* plan) : registry_(registry), plan_(*plan) {}
  void SetOfFeed(OfFeed of_feed) { of_feed_ = std::move(of_feed); }

  // Returns the contents of a value. Notes the contents of the value, and of all values from which
  // they follow, in the metas. Returns nullptr if the contents depend on data, and sets `why` to
  // the source of the data: `feed "n"`.
  Contents Find(ValueId value, std::string* why);

 private:
  bool MayCompute(const Instruction& instruction) const;
  // Sets the contents of the outputs, given the contents of the inputs. Returns false if the op
  // refuses its inputs.
  bool Compute(const Instruction& instruction, std::string* why);

  const OpRegistry& registry_;
  Plan& plan_;
  OfFeed of_feed_;
};

// Returns the contents of an op's outputs, in order, for the shapes and contents in `context`;
// nullptr for each output whose contents `plan` doesn't know. `instruction` is an instruction of
// the plan, or a member of a fused instruction. Throws the Errors of Evaluate.
std::vector<KnownContents::Contents> EvaluateKnown(const OpRegistry& registry, const Plan& plan,
                                                   const Instruction& instruction,
                                                   const OpContext& context);

// `current` is a copy of `plan` with other rows. For each output of the instructions from `begin`
// to `end` whose contents `plan` knows, computes the contents in `current` from the shapes there.
// Throws the Errors of Evaluate.
void FollowShapes(const OpRegistry& registry, const Plan& plan, size_t begin, size_t end,
                  Plan* current);

}  // namespace skiff
