#include "framework/builder/number_like.h"

#include "framework/builder/fill_value.h"
#include "framework/builder/layer_call.h"

namespace skiff {

Variable NumberLike(const Variable& like, double number, const std::source_location& site) {
  const LayerCall call("number", "", site);
  call.CheckedName(like);
  call.Enforce(MayHold(like.dtype(), number), number, " is no whole number that \"", like.name(),
               "\" of ", like.dtype(), " can hold");
  return FilledVariable("fill_constant", {}, like.dtype(), initializer::Constant(number), site);
}

}  // namespace skiff
