// The text format of plans, for people and for tests. Parsing gives back a plan that runs the same.
//
//   plan cpu reuse=arena {
//     value x#0 float32 [2, 16] @feed
//     value w#1 float32 [16] persistable @scope
//     {Out: [a#2 float32 [2, 16] @0]} = relu(X: [x#0])
//     {Out: [b#3 float32 [2, 16] @a#2]} = elementwise_add(X: [a#2], Y: [w#1]) {axis = -1}
//     copy [c#4 float32 [2, 16] blocked=8 @128] from [b#3] position=1
//     fused [d#6 float32 [2, 16] @256] from [x#0, b#3] elements=32 position=3 {
//       {Out: [e#5 float32 [2, 16]]} = tanh(X: [x#0]) position=2
//       {Out: [d#6]} = elementwise_mul(X: [e#5], Y: [b#3])
//     }
//     feed [x#0]
//     fetch [c#4, d#6]
//     bytes max_live=384 planned=384 unshared=512
//   }
//
// - The plan starts with its place and the policy by which values share memory; `guards` after it
//   says that each value has a guard.
// - A value is name#index. Its declaration continues: its dtype and shape; whichever apply of
//   lod=N, persistable, blocked=N, selected_rows=H (of a dense tensor with H rows), array,
//   exclusive and checkpoint; and where it is stored: @scope, @feed, @made, @stack, @ and another
//   value, in that one's storage, or @ and a number, at this offset of the arena; nothing while the
//   offset isn't planned.
// - A value is declared where an instruction writes it, or else by a line `value …`. Values that
//   nothing mentions aren't printed.
// - An op is written as in a program (framework/ir/text.h), with values for names; `none` stands
//   for @EMPTY@. A copy has one value on each side. A fused instruction lists the values that its
//   members write for other instructions, the values read of other instructions, the partition into
//   blocks (elements=N row_axis=N parts=N), and its members.
// - A loop lists the values that it leaves for and needs of other instructions, the links to these
//   values (in, out, stack, variable: loop.h), and the plan of its body. The values of the body
//   have indices of their own:
//     loop while [n#4 int64 [1] @0] from [i#0, c#1] block=0 {
//       runs condition_feed=1 max=1000
//       in carried 0 input=0
//       in carried 1 input=1
//       out carried 2 output=0 feed=0
//       …
//       plan cpu reuse=arena { … }
//     }
// - After an instruction of a body that runs on the rows of many iterations at once, follows
//   `before` or `after` (Batching).
// - After an instruction of the communication stream follows `@comm(cN)`, its number there. After
//   an instruction of the main stream follows `wait(cN)` if it waits for number N, which has ended
//   only after all lower numbers.
// - After an instruction follow its workspaces, as in `workspaces=[64 @128, 32]`; `position=N`
//   unless it is the position of the instruction before plus 1; `block=N` unless that is 0; and
//   `id=N` unless that is the position. A copy is for the op at its position, or for the nearest
//   one.
// - Where the program was made (CreationSite) is left out, as are Plan::recomputed, LoDs and
//   Loop::joint_body. So a plan with ragged values, or with an op that sets rows (`sets_rows` after
//   the op), can be compared after it was read back, but not run.
#pragma once

#include <string>
#include <string_view>

#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

std::string PrintPlan(const Plan& plan);

// Parses a plan of ops of the registry, which must outlive the plan. Throws Error
// (kInvalidArgument), starting with line and column, if the text is not a plan or a definition
// refuses an op. Whether the plan makes sense is CheckPlan's to say.
Plan ParsePlan(const OpRegistry& registry, std::string_view text);

}  // namespace skiff
