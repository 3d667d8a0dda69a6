// Finds elements of values that are known when a plan is made: constants, and what follows from
// shapes. Shapes and axes that a program computes (SlotDef::attribute) are such elements.
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
  // Finds those of a feed. Returns nullptr if they depend on data, and then sets `why` to what they
  // depend on.
  using OfFeed = std::function<Contents(ValueId feed, std::string* why)>;

  // Both must outlive the object. Without `of_feed`, nothing is known of feeds.
  KnownContents(const OpRegistry& registry, Plan* plan) : registry_(registry), plan_(*plan) {}
  void SetOfFeed(OfFeed of_feed) { of_feed_ = std::move(of_feed); }

  // Returns the contents, which it notes in the value's meta and in those of all values from which
  // they follow. Returns nullptr if they depend on data, and then sets `why` to what they depend
  // on: `feed "n"`.
  Contents Find(ValueId value, std::string* why);

 private:
  bool MayCompute(const Instruction& instruction) const;
  // Sets the contents of the outputs, given those of the inputs. Returns false if the op refuses
  // them.
  bool Compute(const Instruction& instruction, std::string* why);

  const OpRegistry& registry_;
  Plan& plan_;
  OfFeed of_feed_;
};

// Returns what an op makes of the shapes and contents in `context`, in the order of its outputs:
// those whose contents `plan` knows, nullptr for all others. `instruction` is one of the plan, or a
// member of one. Throws what Evaluate throws.
std::vector<KnownContents::Contents> EvaluateKnown(const OpRegistry& registry, const Plan& plan,
                                                   const Instruction& instruction,
                                                   const OpContext& context);

// Sets what `plan` knows of the contents of values that the instructions from `begin` to `end` make
// to what follows from the shapes of `moment`, a copy of the plan with other rows. Throws what
// Evaluate throws.
void FollowShapes(const OpRegistry& registry, const Plan& plan, size_t begin, size_t end,
                  Plan* moment);

}  // namespace skiff
