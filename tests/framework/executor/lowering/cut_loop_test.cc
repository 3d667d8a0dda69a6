// Cuts joint bodies into halves, as texts. Links are written like those of a loop in the text
// format of plans, but name values of the joint body and variables outside:
//
//   in KIND VALUE                                            (a feed)
//   out KIND VALUE [feed=N] [defines=VARIABLE]               (a fetch)
//   condition VALUE, slots N                                 (JointLinks)
//   gradient                                                 (the links of the gradient half
//   follow)
//
// In results, `shape` follows a feed of which the half reads no more than that, and these are
// there, too: `reads` and `writes` of variables of the scope, and after the halves a line for each
// stash.
#include "framework/executor/lowering/cut_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/api/default_registry.h"
#include "framework/op/lod_group.h"
#include "framework/plan/loop_names.h"
#include "framework/plan/plan_text.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

template <typename Kinds>
auto KindOf(const Kinds& kinds, const std::string& name) {
  const auto* found = std::ranges::find(kinds, name, [](const auto& kind) { return kind.first; });
  SKIFF_ENFORCE(found != kinds.end(), kInvalidArgument, "expected a kind of link, found ", name);
  return found->second;
}

// Parses name#index.
ValueId ValueOf(const std::string& text) {
  return ValueId(std::stoul(text.substr(text.find('#') + 1)));
}

JointLinks ParseLinks(const std::string& text) {
  JointLinks links;
  HalfLinks* half = &links.forward;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what, first, second;
    words >> what >> first >> second;
    if (what == "gradient") half = &links.gradient;
    if (what == "slots") links.slots = std::stol(first);
    if (what == "condition") links.condition = ValueOf(first);
    if (what == "in") {
      half->feeds.push_back({.kind = KindOf(kFeedKinds, first),
                             .value = ValueOf(second),
                             .input = {.read_later = second}});
    }
    if (what != "out") continue;
    JointFetch fetch{.kind = KindOf(kFetchKinds, first), .value = ValueOf(second)};
    for (std::string word; words >> word;) {
      const std::string value = word.substr(word.find('=') + 1);
      if (word.starts_with("feed=")) fetch.feed = std::stoi(value);
      if (word.starts_with("defines=")) fetch.defines = value;
    }
    half->fetches.push_back(fetch);
  }
  return links;
}

std::string TextOf(const HalfBody& half) {
  const auto value_text = [&](ValueId value) {
    return StrCat(half.plan[value].name, "#", value.index());
  };
  std::string text;
  for (const HalfFeed& feed : half.feeds) {
    text += StrCat("in ", NameOf(feed.link.kind), " ", value_text(feed.link.value),
                   feed.reads_data ? "" : " shape", "\n");
  }
  for (const HalfFetch& fetch : half.fetches) {
    text += StrCat("out ", NameOf(fetch.link.kind), " ", value_text(fetch.link.value));
    if (fetch.link.feed >= 0) text += StrCat(" feed=", fetch.link.feed);
    if (!fetch.link.defines.empty()) text += " defines=" + fetch.link.defines;
    if (!fetch.initial.read_later.empty()) text += " initial=" + fetch.initial.read_later;
    text += "\n";
  }
  if (half.condition_feed >= 0) text += StrCat("condition feed=", half.condition_feed, "\n");
  for (const ValueId value : half.scope_reads) text += "reads " + value_text(value) + "\n";
  for (const ValueId value : half.scope_writes) text += "writes " + value_text(value) + "\n";
  return text + PrintPlan(half.plan);
}

std::string TextOf(const LoopHalves& halves) {
  std::string text = "\n" + TextOf(halves.forward);
  if (halves.gradient) text += "gradient\n" + TextOf(*halves.gradient);
  for (const Stash& stash : halves.stashes) {
    text += "stack " + halves.forward.plan[stash.value].name + TextOf(stash.value);
    if (stash.next_of) {
      text += " next of " + halves.forward.plan[stash.next_of].name + TextOf(stash.next_of);
    }
    text += "\n";
  }
  return text;
}

// Cuts a joint body. Its feeds and fetches are those of the links, and each value with `lod` has a
// LoD.
std::string Cut(const std::string& links_text, const std::string& joint) {
  const JointLinks links = ParseLinks(links_text);
  Plan plan = ParsePlan(DefaultOpRegistry(), joint);
  for (const HalfLinks* half : {&links.forward, &links.gradient}) {
    for (const JointFeed& feed : half->feeds) plan.feeds.push_back(feed.value);
    for (const JointFetch& fetch : half->fetches) plan.fetches.push_back(fetch.value);
  }
  for (const ValueId id : plan.ids()) {
    if (plan[id].meta.lod_level > 0) plan[id].meta.lod = std::make_shared<const LoDGroup>();
  }
  return TextOf(CutLoop(std::move(plan), links));
}

// Returns the result of Cut without the plans of the halves.
std::string CutLinks(const std::string& links_text, const std::string& joint) {
  std::istringstream lines(Cut(links_text, joint));
  std::string text;
  bool is_plan = false;
  for (std::string line; std::getline(lines, line);) {
    is_plan = is_plan || line.starts_with("plan ");
    if (!is_plan) text += line + "\n";
    if (line == "}") is_plan = false;
  }
  return text;
}

// Returns the lines of Cut for the stashes.
std::string CutStashes(const std::string& links_text, const std::string& joint) {
  const std::string links = CutLinks(links_text, joint);
  const size_t begin = links.find("stack ");
  return begin == std::string::npos ? "" : links.substr(begin);
}

TEST(CutLoop, LeavesOneHalfWithoutABoundary) {
  EXPECT_EQ(Cut(R"(
in carried state#0
in invariant unread#1
in carried more#2
out carried next#4 feed=0
out carried less#3 feed=2
out last next#4 defines=last
condition more#2
)",
                R"(plan cpu reuse=none {
  value state#0 float32 [2] @feed
  value unread#1 float32 [2] @feed
  value more#2 bool [1] @feed
  {Out: [less#3 bool [1]]} = less_than(X: [state#0], Y: [state#0])
  {Out: [next#4 float32 [2]]} = relu(X: [state#0])
})"),
            R"(
in carried state#0
in carried more#2
out carried next#4 feed=0
out carried less#3 feed=1
out last next#4 defines=last
condition feed=1
plan cpu reuse=none {
  value state#0 float32 [2] @feed
  value more#2 bool [1] @feed
  {Out: [less#3 bool [1]]} = less_than(X: [state#0], Y: [state#0])
  {Out: [next#4 float32 [2]]} = relu(X: [state#0])
  feed [state#0, more#2]
  fetch [next#4, less#3, next#4]
}
)");
}

// Both halves read the parts, and the gradient half reads what the forward half has made of them.
TEST(CutLoop, StacksWhatTheGradientHalfReads) {
  EXPECT_EQ(Cut(R"(
slots 3
in part x#0
out part y#2 defines=ys
gradient
in part dy#3
out part dx#5 defines=dxs
)",
                R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value dy#3 float32 [2] @feed
  {Out: [a#1 float32 [2]]} = tanh(X: [x#0])
  {Out: [y#2 float32 [2]]} = elementwise_mul(X: [a#1], Y: [x#0])
  {} = loop_boundary(X: [y#2])
  {X@GRAD: [da#4 float32 [2]]} = elementwise_mul_grad(X: [a#1], Y: [x#0], Out@GRAD: [dy#3])
  {X@GRAD: [dx#5 float32 [2]]} = tanh_grad(Out: [a#1], Out@GRAD: [da#4])
})"),
            R"(
in part x#0
out part y#2 defines=ys
plan cpu reuse=none {
  value x#0 float32 [2] @feed
  {Out: [a#1 float32 [2] @stack]} = tanh(X: [x#0])
  {Out: [y#2 float32 [2]]} = elementwise_mul(X: [a#1], Y: [x#0])
  feed [x#0]
  fetch [y#2]
}
gradient
in part x#0
in part dy#3
out part dx#5 defines=dxs
plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value a#1 float32 [2] @stack
  value dy#3 float32 [2] @feed
  {X@GRAD: [da#4 float32 [2]]} = elementwise_mul_grad(Out@GRAD: [dy#3], X: [a#1], Y: [x#0]) position=3
  {X@GRAD: [dx#5 float32 [2]]} = tanh_grad(Out: [a#1], Out@GRAD: [da#4])
  feed [x#0, dy#3]
  fetch [dx#5]
}
stack a#1
)");
}

constexpr const char* kCarried = R"(plan cpu reuse=none {
  value state#0 float32 [2] @feed
  value w#1 float32 [2] @feed
  value d_next#4 float32 [2] @feed
  {Out: [product#2 float32 [2]]} = elementwise_mul(X: [state#0], Y: [w#1])
  {Out: [next#3 float32 [2]]} = tanh(X: [product#2])
  {} = loop_boundary(X: [next#3])
  {X@GRAD: [d_product#5 float32 [2]]} = tanh_grad(Out: [next#3], Out@GRAD: [d_next#4])
  {X@GRAD: [d_state#6 float32 [2]], Y@GRAD: [dw#7 float32 [2]]} = elementwise_mul_grad(X: [state#0], Y: [w#1], Out@GRAD: [d_product#5])
})";
constexpr const char* kLinksOfCarried = R"(
in carried state#0
in invariant w#1
out carried next#3 feed=0 defines=last
gradient
in carried d_next#4
out carried d_state#6 feed=0 defines=d_first
out sum dw#7 defines=dw
)";

// The gradient of what all iterations read is a sum.
TEST(CutLoop, PutsWhatACarriedValueBecomesIntoItsStack) {
  EXPECT_EQ(Cut(StrCat("slots 3", kLinksOfCarried), kCarried), R"(
in carried state#0
in invariant w#1
out carried next#3 feed=0 defines=last
plan cpu reuse=none {
  value state#0 float32 [2] @feed
  value w#1 float32 [2] @feed
  {Out: [product#2 float32 [2]]} = elementwise_mul(X: [state#0], Y: [w#1])
  {Out: [next#3 float32 [2] @stack]} = tanh(X: [product#2])
  feed [state#0, w#1]
  fetch [next#3]
}
gradient
in invariant w#1
in carried d_next#4
out carried d_state#6 feed=1 defines=d_first
out sum dw#7 defines=dw
plan cpu reuse=none {
  value state#0 float32 [2] @feed
  value w#1 float32 [2] @feed
  value next#3 float32 [2] @stack
  value d_next#4 float32 [2] @feed
  {X@GRAD: [d_product#5 float32 [2]]} = tanh_grad(Out: [next#3], Out@GRAD: [d_next#4]) position=3
  {X@GRAD: [d_state#6 float32 [2]], Y@GRAD: [dw#7 float32 [2]]} = elementwise_mul_grad(Out@GRAD: [d_product#5], X: [state#0], Y: [w#1])
  feed [w#1, d_next#4]
  fetch [d_state#6, dw#7]
}
stack state#0
stack next#3 next of state#0
)");
}

TEST(CutLoop, GivesEachStashAStackIfOnlyARunKnowsTheSlots) {
  const std::string known = Cut(StrCat("slots 3", kLinksOfCarried), kCarried);
  const std::string unknown = Cut(StrCat("slots -1", kLinksOfCarried), kCarried);
  EXPECT_EQ(unknown.substr(unknown.find("stack ")), R"(stack state#0
stack next#3
)");
  EXPECT_EQ(unknown.substr(0, unknown.find("stack ")), known.substr(0, known.find("stack ")));
}

TEST(CutLoop, StacksNothingOfWhichOnlyTheShapeIsRead) {
  EXPECT_EQ(Cut(R"(
slots 3
in part x#0
in invariant w#1
out part y#3 defines=ys
gradient
in part dy#4
out sum dw#6 defines=dw
)",
                R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value w#1 float32 [1] @feed
  value dy#4 float32 [2] @feed
  {Out: [a#2 float32 [2]]} = tanh(X: [x#0])
  {Out: [y#3 float32 [2]]} = elementwise_add(X: [a#2], Y: [w#1])
  {} = loop_boundary(X: [y#3])
  {X@GRAD: [da#5 float32 [2]], Y@GRAD: [dw#6 float32 [1]]} = elementwise_add_grad(X: [a#2], Y: [w#1], Out@GRAD: [dy#4])
})"),
            R"(
in part x#0
in invariant w#1
out part y#3 defines=ys
plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value w#1 float32 [1] @feed
  {Out: [a#2 float32 [2]]} = tanh(X: [x#0])
  {Out: [y#3 float32 [2]]} = elementwise_add(X: [a#2], Y: [w#1])
  feed [x#0, w#1]
  fetch [y#3]
}
gradient
in invariant w#1 shape
in part dy#4
out sum dw#6 defines=dw
plan cpu reuse=none {
  value w#1 float32 [1] @feed
  value a#2 float32 [2]
  value dy#4 float32 [2] @feed
  {X@GRAD: [da#5 float32 [2]], Y@GRAD: [dw#6 float32 [1]]} = elementwise_add_grad(Out@GRAD: [dy#4], X: [a#2], Y: [w#1]) position=3
  feed [w#1, dy#4]
  fetch [dw#6]
}
)");
}

// What is after the boundary belongs to the gradient half, whichever op it is for.
TEST(CutLoop, LetsTheGradientHalfComputeAgain) {
  EXPECT_EQ(Cut(R"(
slots 3
in part x#0
out last y#2 defines=y
gradient
in carried dy#3
out part dx#6 defines=dxs
)",
                R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value dy#3 float32 [2] @feed
  {Out: [a#1 float32 [2]]} = tanh(X: [x#0])
  {Out: [y#2 float32 [2]]} = tanh(X: [a#1])
  {} = loop_boundary(X: [y#2])
  {Out: [a#4 float32 [2]]} = tanh(X: [x#0]) position=0
  {X@GRAD: [da#5 float32 [2]]} = tanh_grad(Out: [y#2], Out@GRAD: [dy#3])
  {X@GRAD: [dx#6 float32 [2]]} = tanh_grad(Out: [a#4], Out@GRAD: [da#5])
})"),
            R"(
in part x#0
out last y#2 defines=y
plan cpu reuse=none {
  value x#0 float32 [2] @feed
  {Out: [a#1 float32 [2]]} = tanh(X: [x#0])
  {Out: [y#2 float32 [2] @stack]} = tanh(X: [a#1])
  feed [x#0]
  fetch [y#2]
}
gradient
in part x#0
in carried dy#3
out part dx#6 defines=dxs
plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value y#2 float32 [2] @stack
  value dy#3 float32 [2] @feed
  {Out: [a#4 float32 [2]]} = tanh(X: [x#0])
  {X@GRAD: [da#5 float32 [2]]} = tanh_grad(Out: [y#2], Out@GRAD: [dy#3])
  {X@GRAD: [dx#6 float32 [2]]} = tanh_grad(Out: [a#4], Out@GRAD: [da#5])
  feed [x#0, dy#3]
  fetch [dx#6]
}
stack y#2
)");
}

// A view of what all iterations read lies there, in both halves.
TEST(CutLoop, StacksNoViewOfAnInvariant) {
  EXPECT_EQ(Cut(R"(
slots 3
in part x#0
in invariant w#1
out part y#3 defines=ys
gradient
in part dy#4
out part dx#5 defines=dxs
)",
                R"(plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  value dy#4 float32 [4] @feed
  {Out: [view#2 float32 [4]], XShape: [none]} = reshape2(X: [w#1]) {shape = ints [4]}
  {Out: [y#3 float32 [4]]} = elementwise_mul(X: [x#0], Y: [view#2])
  {} = loop_boundary(X: [y#3])
  {X@GRAD: [dx#5 float32 [4]]} = elementwise_mul_grad(X: [x#0], Y: [view#2], Out@GRAD: [dy#4])
})"),
            R"(
in part x#0
in invariant w#1
out part y#3 defines=ys
plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  {Out: [view#2 float32 [4] @w#1], XShape: [none]} = reshape2(X: [w#1]) {shape = ints [4]}
  {Out: [y#3 float32 [4]]} = elementwise_mul(X: [x#0], Y: [view#2])
  feed [x#0, w#1]
  fetch [y#3]
}
gradient
in part x#0
in invariant w#1
in part dy#4
out part dx#5 defines=dxs
plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  value view#2 float32 [4] @w#1
  value dy#4 float32 [4] @feed
  {X@GRAD: [dx#5 float32 [4]]} = elementwise_mul_grad(Out@GRAD: [dy#4], X: [x#0], Y: [view#2]) position=3
  feed [x#0, w#1, dy#4]
  fetch [dx#5]
}
)");
}

// A variable of the scope has one storage for all iterations. The gradient half finds it there.
TEST(CutLoop, StacksNoVariableOfTheScope) {
  EXPECT_EQ(Cut(R"(
slots 3
in part x#0
out part y#4 defines=ys
gradient
in part dy#5
out part dx#6 defines=dxs
)",
                R"(plan cpu reuse=none {
  value x#0 float32 [1] @feed
  value w#1 float32 [1] persistable @scope
  value count#2 float32 [1] persistable @scope
  value dy#5 float32 [1] @feed
  {Out: [count#3 float32 [1] persistable @scope]} = increment(X: [count#2])
  {Out: [y#4 float32 [1]]} = elementwise_mul(X: [x#0], Y: [w#1])
  {} = loop_boundary(X: [y#4])
  {X@GRAD: [dx#6 float32 [1]]} = elementwise_mul_grad(X: [count#3], Y: [w#1], Out@GRAD: [dy#5])
})"),
            R"(
in part x#0
out part y#4 defines=ys
reads count#2
reads w#1
writes count#3
plan cpu reuse=none {
  value x#0 float32 [1] @feed
  value w#1 float32 [1] persistable @scope
  value count#2 float32 [1] persistable @scope
  {Out: [count#3 float32 [1] persistable @scope]} = increment(X: [count#2])
  {Out: [y#4 float32 [1]]} = elementwise_mul(X: [x#0], Y: [w#1])
  feed [x#0]
  fetch [y#4]
}
gradient
in part dy#5
out part dx#6 defines=dxs
reads count#3
reads w#1
plan cpu reuse=none {
  value w#1 float32 [1] persistable @scope
  value count#3 float32 [1] persistable @scope
  value dy#5 float32 [1] @feed
  {X@GRAD: [dx#6 float32 [1]]} = elementwise_mul_grad(Out@GRAD: [dy#5], X: [count#3], Y: [w#1]) position=3
  feed [dy#5]
  fetch [dx#6]
}
)");
}

// No iteration reads what the one before has left. What the loop defines is that of the last one.
TEST(CutLoop, LeavesTheLastValueOfACarriedOneThatNothingReads) {
  EXPECT_EQ(Cut(R"(
slots 3
in part x#0
in carried unread#1
in carried unwanted#2
out carried y#3 feed=1 defines=last
out carried z#4 feed=2
)",
                R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value unread#1 float32 [2] @feed
  value unwanted#2 float32 [2] @feed
  {Out: [y#3 float32 [2]]} = tanh(X: [x#0])
  {Out: [z#4 float32 [2]]} = relu(X: [x#0])
})"),
            R"(
in part x#0
out last y#3 defines=last initial=unread#1
plan cpu reuse=none {
  value x#0 float32 [2] @feed
  {Out: [y#3 float32 [2]]} = tanh(X: [x#0])
  {Out: [z#4 float32 [2]]} = relu(X: [x#0])
  feed [x#0]
  fetch [y#3]
}
)");
}

constexpr const char* kLinksOfView = R"(
slots 3
in part x#0
in invariant w#1
out part y#3 defines=ys
gradient
in part dy#4
out part dx#5 defines=dxs
)";

// The op that writes in place would otherwise change the feed.
TEST(CutLoop, StacksAViewIntoWhichAnotherOpWrites) {
  EXPECT_EQ(Cut(kLinksOfView, R"(plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  value dy#4 float32 [4] @feed
  {Out: [view#2 float32 [4]], XShape: [none]} = reshape2(X: [w#1]) {shape = ints [4]}
  {Out: [y#3 float32 [4] @view#2]} = elementwise_mul(X: [view#2], Y: [x#0])
  {} = loop_boundary(X: [y#3])
  {X@GRAD: [dx#5 float32 [4]]} = relu_grad(Out: [y#3], Out@GRAD: [dy#4])
})"),
            R"(
in part x#0
in invariant w#1
out part y#3 defines=ys
plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  {Out: [view#2 float32 [4] @stack], XShape: [none]} = reshape2(X: [w#1]) {shape = ints [4]}
  {Out: [y#3 float32 [4] @view#2]} = elementwise_mul(X: [view#2], Y: [x#0])
  feed [x#0, w#1]
  fetch [y#3]
}
gradient
in part dy#4
out part dx#5 defines=dxs
plan cpu reuse=none {
  value view#2 float32 [4] @stack
  value y#3 float32 [4] @view#2
  value dy#4 float32 [4] @feed
  {X@GRAD: [dx#5 float32 [4]]} = relu_grad(Out: [y#3], Out@GRAD: [dy#4]) position=3
  feed [dy#4]
  fetch [dx#5]
}
stack view#2
)");
}

TEST(CutLoop, StacksAViewIntoWhichTheGradientHalfWrites) {
  EXPECT_EQ(CutStashes(kLinksOfView, R"(plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  value dy#4 float32 [4] @feed
  {Out: [view#2 float32 [4]], XShape: [none]} = reshape2(X: [w#1]) {shape = ints [4]}
  {Out: [y#3 float32 [4]]} = elementwise_mul(X: [x#0], Y: [view#2])
  {} = loop_boundary(X: [y#3])
  {X@GRAD: [dx#5 float32 [4] @view#2]} = elementwise_mul_grad(X: [x#0], Y: [view#2], Out@GRAD: [dy#4])
})"),
            "stack view#2\n");
}

TEST(CutLoop, StacksAViewThatTheUserWantsForItself) {
  EXPECT_EQ(CutStashes(kLinksOfView, R"(plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  value dy#4 float32 [4] @feed
  {Out: [view#2 float32 [4] exclusive], XShape: [none]} = reshape2(X: [w#1]) {shape = ints [4]}
  {Out: [y#3 float32 [4]]} = elementwise_mul(X: [x#0], Y: [view#2])
  {} = loop_boundary(X: [y#3])
  {X@GRAD: [dx#5 float32 [4]]} = elementwise_mul_grad(X: [x#0], Y: [view#2], Out@GRAD: [dy#4])
})"),
            "stack view#2\n");
}

TEST(CutLoop, StacksNoViewOfAViewOfAnInvariant) {
  const std::string joint = R"(plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  value dy#4 float32 [4] @feed
  {Out: [column#2 float32 [4, 1]], XShape: [none]} = reshape2(X: [w#1]) {shape = ints [4, 1]}
  {Out: [row#6 float32 [4] @column#2], XShape: [none]} = reshape2(X: [column#2]) {shape = ints [4]}
  {Out: [y#3 float32 [4]]} = elementwise_mul(X: [x#0], Y: [row#6])
  {} = loop_boundary(X: [y#3])
  {X@GRAD: [dx#5 float32 [4]]} = elementwise_mul_grad(X: [x#0], Y: [row#6], Out@GRAD: [dy#4])
})";
  EXPECT_EQ(CutStashes(kLinksOfView, joint), "");
  EXPECT_THAT(Cut(kLinksOfView, joint), HasSubstr("value row#6 float32 [4] @w#1\n"));
}

// A view that the gradient half makes again.
TEST(CutLoop, CopiesNoViewOfAnInvariantInTheGradientHalf) {
  EXPECT_THAT(Cut(kLinksOfView, R"(plan cpu reuse=none {
  value x#0 float32 [4] @feed
  value w#1 float32 [2, 2] @feed
  value dy#4 float32 [4] @feed
  {Out: [y#3 float32 [4]]} = relu(X: [x#0])
  {} = loop_boundary(X: [y#3])
  {Out: [view#2 float32 [4]], XShape: [none]} = reshape2(X: [w#1]) {shape = ints [4]}
  {X@GRAD: [dx#5 float32 [4]]} = elementwise_mul_grad(X: [x#0], Y: [view#2], Out@GRAD: [dy#4])
})"),
              HasSubstr("{Out: [view#2 float32 [4] @w#1], XShape: [none]} = reshape2(X: [w#1])"));
}

// A pass may have found that the gradient half would compute a value a second time.
TEST(CutLoop, StacksWhatTheGradientHalfOnlyHandsOut) {
  EXPECT_EQ(Cut(R"(
slots 3
in part x#0
out part y#2 defines=ys
gradient
in part dy#3
out part a#1 defines=dxs
out part dx#4 defines=dzs
)",
                R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value dy#3 float32 [2] @feed
  {Out: [a#1 float32 [2]]} = tanh(X: [x#0])
  {Out: [y#2 float32 [2]]} = relu(X: [a#1])
  {} = loop_boundary(X: [y#2])
  {Out: [dx#4 float32 [2]]} = relu(X: [dy#3])
})"),
            R"(
in part x#0
out part y#2 defines=ys
plan cpu reuse=none {
  value x#0 float32 [2] @feed
  {Out: [a#1 float32 [2] @stack]} = tanh(X: [x#0])
  {Out: [y#2 float32 [2]]} = relu(X: [a#1])
  feed [x#0]
  fetch [y#2]
}
gradient
in part dy#3
out part a#1 defines=dxs
out part dx#4 defines=dzs
plan cpu reuse=none {
  value a#1 float32 [2] @stack
  value dy#3 float32 [2] @feed
  {Out: [dx#4 float32 [2]]} = relu(X: [dy#3]) position=3
  feed [dy#3]
  fetch [a#1, dx#4]
}
stack a#1
)");
}

TEST(CutLoop, ReadsAnInvariantThatAHalfOnlyHandsOut) {
  EXPECT_EQ(CutLinks(R"(
in part x#0
in invariant w#1
out part y#2 defines=ys
out last w#1 defines=last
)",
                     R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value w#1 float32 [2] @feed
  {Out: [y#2 float32 [2]]} = tanh(X: [x#0])
})"),
            R"(
in part x#0
in invariant w#1
out part y#2 defines=ys
out last w#1 defines=last
)");
}

// Other LoDs follow from the LoDs of feeds, whether an instruction reads the feeds or not.
TEST(CutLoop, KeepsFeedsWithALoD) {
  EXPECT_EQ(CutLinks(R"(
slots 3
in part x#0
in invariant ragged#1
in invariant dense#2
in carried state#3
out part y#4 defines=ys
out carried next#5 feed=3
gradient
in part dy#6
in carried d_next#7
out part dx#8 defines=dxs
)",
                     R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value ragged#1 float32 [6, 2] lod=1 @feed
  value dense#2 float32 [6, 2] @feed
  value state#3 float32 [6, 2] lod=1 @feed
  value dy#6 float32 [2] @feed
  value d_next#7 float32 [6, 2] lod=1 @feed
  {Out: [y#4 float32 [2]]} = tanh(X: [x#0])
  {Out: [next#5 float32 [2] lod=1]} = relu(X: [x#0])
  {} = loop_boundary(X: [y#4])
  {X@GRAD: [dx#8 float32 [2]]} = tanh_grad(Out: [y#4], Out@GRAD: [dy#6])
})"),
            R"(
in part x#0
in invariant ragged#1 shape
in carried state#3
out part y#4 defines=ys
out carried next#5 feed=2
gradient
in invariant ragged#1 shape
in part dy#6
in carried d_next#7
out part dx#8 defines=dxs
stack y#4
)");
}

// The fused instruction reads `w` for nothing but its shape, so that its own inputs lack it.
TEST(CutLoop, KeepsTheShapesThatMembersOfAFusedInstructionRead) {
  EXPECT_EQ(CutLinks(R"(
slots 3
in part x#0
in invariant w#1
out part a#2 defines=as
gradient
in part dy#3
out part dx#5 defines=dxs
)",
                     R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value w#1 float32 [2] @feed
  value dy#3 float32 [2] @feed
  {Out: [a#2 float32 [2]]} = tanh(X: [x#0])
  {} = loop_boundary(X: [a#2])
  fused [dx#5 float32 [2]] from [a#2, dy#3] elements=2 position=3 {
    {X@GRAD: [da#4 float32 [2]]} = elementwise_add_grad(X: [a#2], Y: [w#1], Out@GRAD: [dy#3]) position=2
    {X@GRAD: [dx#5]} = tanh_grad(Out: [a#2], Out@GRAD: [da#4])
  }
})"),
            R"(
in part x#0
out part a#2 defines=as
gradient
in invariant w#1 shape
in part dy#3
out part dx#5 defines=dxs
stack a#2
)");
}

// Rows may differ from slot to slot, but the stack is made of slots of equal bytes.
TEST(CutLoop, PutsIntoTheStackOfACarriedValueOnlyWhatHasSlotsOfAsManyBytes) {
  const auto stashes = [](const std::string& of_state, const std::string& of_next) {
    return CutStashes(R"(
slots 3
in carried state#0
out carried next#1 feed=0
gradient
in carried d_next#2
out carried d_state#3 feed=0
out part d_other#4
)",
                      StrCat(R"(plan cpu reuse=none {
  value state#0 float32 )",
                             of_state, R"( @feed
  value d_next#2 float32 [2] @feed
  {Out: [next#1 float32 )",
                             of_next, R"(]} = concat(X: [state#0, state#0])
  {} = loop_boundary(X: [next#1])
  {X@GRAD: [d_state#3 float32 [2]]} = tanh_grad(Out: [next#1], Out@GRAD: [d_next#2])
  {X@GRAD: [d_other#4 float32 [2]]} = tanh_grad(Out: [state#0], Out@GRAD: [d_next#2])
})"));
  };
  EXPECT_EQ(stashes("[8]", "[16]"), "stack state#0\nstack next#1 next of state#0\n");
  EXPECT_EQ(stashes("[16]", "[32]"), "stack state#0\nstack next#1\n");
}

TEST(CutLoop, PutsOneStashIntoTheStackOfACarriedValue) {
  EXPECT_EQ(CutStashes(R"(
slots 3
in carried state#0
out carried first#1 feed=0
out carried second#2 feed=0
gradient
in carried d_next#3
out part dx#4
out part dy#5
out part dz#6
)",
                       R"(plan cpu reuse=none {
  value state#0 float32 [2] @feed
  value d_next#3 float32 [2] @feed
  {Out: [first#1 float32 [2]]} = tanh(X: [state#0])
  {Out: [second#2 float32 [2]]} = relu(X: [state#0])
  {} = loop_boundary(X: [second#2])
  {X@GRAD: [dx#4 float32 [2]]} = tanh_grad(Out: [first#1], Out@GRAD: [d_next#3])
  {X@GRAD: [dy#5 float32 [2]]} = relu_grad(Out: [second#2], Out@GRAD: [d_next#3])
  {X@GRAD: [dz#6 float32 [2]]} = tanh_grad(Out: [state#0], Out@GRAD: [d_next#3])
})"),
            "stack state#0\nstack first#1 next of state#0\nstack second#2\n");
}

// A carried value that the gradient half doesn't read has no stack.
TEST(CutLoop, GivesAStashAStackIfTheCarriedValueHasNone) {
  EXPECT_EQ(CutStashes(R"(
slots 3
in carried state#0
out carried next#1 feed=0
gradient
in carried d_next#2
out carried d_state#3 feed=0
)",
                       R"(plan cpu reuse=none {
  value state#0 float32 [2] @feed
  value d_next#2 float32 [2] @feed
  {Out: [next#1 float32 [2]]} = tanh(X: [state#0])
  {} = loop_boundary(X: [next#1])
  {X@GRAD: [d_state#3 float32 [2]]} = tanh_grad(Out: [next#1], Out@GRAD: [d_next#2])
})"),
            "stack next#1\n");
}

TEST(CutLoop, StacksTheStorageOfWhatIsComputedInPlace) {
  EXPECT_EQ(CutStashes(StrCat("slots 3", kLinksOfCarried), R"(plan cpu reuse=none {
  value state#0 float32 [2] @feed
  value w#1 float32 [2] @feed
  value d_next#4 float32 [2] @feed
  {Out: [product#2 float32 [2]]} = elementwise_mul(X: [state#0], Y: [w#1])
  {Out: [next#3 float32 [2] @product#2]} = tanh(X: [product#2])
  {} = loop_boundary(X: [next#3])
  {X@GRAD: [d_product#5 float32 [2]]} = tanh_grad(Out: [next#3], Out@GRAD: [d_next#4])
  {X@GRAD: [d_state#6 float32 [2]], Y@GRAD: [dw#7 float32 [2]]} = elementwise_mul_grad(X: [state#0], Y: [w#1], Out@GRAD: [d_product#5])
})"),
            "stack state#0\nstack product#2 next of state#0\n");
}

TEST(CutLoop, KeepsACarriedValueThatOnlyTheGradientHalfReads) {
  EXPECT_EQ(CutLinks(R"(
slots 3
in part x#0
in carried state#1
out carried next#2 feed=1
gradient
in part dy#3
out part dx#4 defines=dxs
)",
                     R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value state#1 float32 [2] @feed
  value dy#3 float32 [2] @feed
  {Out: [next#2 float32 [2]]} = tanh(X: [x#0])
  {} = loop_boundary(X: [next#2])
  {X@GRAD: [dx#4 float32 [2]]} = tanh_grad(Out: [state#1], Out@GRAD: [dy#3])
})"),
            R"(
in part x#0
in carried state#1
out carried next#2 feed=1
gradient
in part dy#3
out part dx#4 defines=dxs
stack state#1
)");
}

// As LeavesTheLastValueOfACarriedOneThatNothingReads.
TEST(CutLoop, LeavesTheLastGradientOfACarriedValueThatNothingReads) {
  EXPECT_EQ(CutLinks(R"(
slots 3
in part x#0
out part y#1 defines=ys
gradient
in part dy#2
in carried unread#3
in carried unwanted#4
out carried dx#5 feed=1 defines=d_first
out carried dz#6 feed=2
)",
                     R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value dy#2 float32 [2] @feed
  value unread#3 float32 [2] @feed
  value unwanted#4 float32 [2] @feed
  {Out: [y#1 float32 [2]]} = tanh(X: [x#0])
  {} = loop_boundary(X: [y#1])
  {X@GRAD: [dx#5 float32 [2]]} = tanh_grad(Out: [y#1], Out@GRAD: [dy#2])
  {Out: [dz#6 float32 [2]]} = relu(X: [dy#2])
})"),
            R"(
in part x#0
out part y#1 defines=ys
gradient
in part dy#2
out last dx#5 defines=d_first initial=unread#3
stack y#1
)");
}

// An array has no place in the arena, and so none in a stack of slots of equal bytes.
TEST(CutLoop, LeavesArraysAmongTheStashesWhereTheyAre) {
  EXPECT_EQ(Cut(R"(
slots 3
in part x#0
in invariant i#1
out part y#3 defines=ys
gradient
in part dy#4
out part dx#5 defines=dxs
)",
                R"(plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value i#1 int64 [1] @feed
  value dy#4 float32 [2] @feed
  {Out: [xs#2 float32 [2] array @made]} = write_to_array(X: [x#0], I: [i#1])
  {Out: [y#3 float32 [2]]} = relu(X: [x#0])
  {} = loop_boundary(X: [y#3])
  {Out: [dx#5 float32 [2]]} = read_from_array(X: [xs#2], I: [i#1])
})"),
            R"(
in part x#0
in invariant i#1
out part y#3 defines=ys
plan cpu reuse=none {
  value x#0 float32 [2] @feed
  value i#1 int64 [1] @feed
  {Out: [xs#2 float32 [2] array @made]} = write_to_array(X: [x#0], I: [i#1])
  {Out: [y#3 float32 [2]]} = relu(X: [x#0])
  feed [x#0, i#1]
  fetch [y#3]
}
gradient
in invariant i#1
out part dx#5 defines=dxs
plan cpu reuse=none {
  value i#1 int64 [1] @feed
  value xs#2 float32 [2] array @made
  {Out: [dx#5 float32 [2]]} = read_from_array(X: [xs#2], I: [i#1]) position=3
  feed [i#1]
  fetch [dx#5]
}
stack xs#2
)");
}

}  // namespace
}  // namespace skiff
