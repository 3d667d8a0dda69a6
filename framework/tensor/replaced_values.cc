#include "framework/tensor/replaced_values.h"

#include "framework/base/error.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/tensor.h"

namespace skiff {
namespace {

// Returns a copy on the same place.
Tensor CopyOf(const Tensor& tensor) {
  Tensor copy(tensor.shape(), tensor.dtype(), tensor.place(), tensor.layout());
  CopyTensor(tensor, &copy);
  copy.set_lod(tensor.lod());
  return copy;
}

}  // namespace

ReplacedValues::ReplacedValues(Scope* scope, const std::vector<std::string>& names,
                               const std::function<void()>& write)
    : scope_(scope) {
  // Two at a time could be restored in the wrong order, and the first one's values would stay.
  SKIFF_ENFORCE(!scope->has_replaced_values(), kFailedPrecondition,
                "the scope has replaced values: restore them before others are put in their place");
  for (const std::string& name : names) own_.emplace(name, CopyOf(scope->Get(name)));
  try {
    write();
  } catch (...) {
    PutBackOrErase();
    throw;
  }
  // Last: from here on the executor refuses writes, and `write` had to make some.
  scope->replaced_ = this;
}

ReplacedValues::~ReplacedValues() {
  if (scope_ == nullptr) return;
  PutBackOrErase();
  scope_->replaced_ = nullptr;
}

void ReplacedValues::Restore() {
  if (scope_ == nullptr) return;
  PutBack();
  scope_->replaced_ = nullptr;
  scope_ = nullptr;
}

void ReplacedValues::PutBack() {
  // A value leaves own_ only after it has been restored, so that a failure can be continued.
  for (; !own_.empty(); own_.erase(own_.begin())) {
    scope_->Assign(own_.begin()->first, own_.begin()->second);
  }
}

void ReplacedValues::PutBackOrErase() noexcept {
  while (!own_.empty()) {
    try {
      PutBack();
    } catch (...) {
      // A missing variable is an Error in the next run; an average that stays would be silently
      // trained.
      scope_->Erase(own_.begin()->first);
      own_.erase(own_.begin());
    }
  }
}

bool ReplacedValues::Contains(std::string_view name) const { return own_.contains(name); }

void ReplacedValues::CheckNotReplaced(const Scope& scope, std::string_view name,
                                      std::string_view what) {
  const ReplacedValues* replaced = scope.replaced_values();
  SKIFF_ENFORCE(replaced == nullptr || !replaced->Contains(name), kFailedPrecondition, what, ": \"",
                name, "\" holds a replaced value, an average for example; restore its own first");
}

}  // namespace skiff
