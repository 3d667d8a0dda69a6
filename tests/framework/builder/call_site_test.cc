#include "framework/builder/call_site.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

class CallSite : public testing::Test {
 protected:
  Program main_;
  Program startup_;
  ProgramGuard guard_{&main_, &startup_};
};

TEST_F(CallSite, OpsNameTheGuardInsteadOfTheCaller) {
  const Variable x = layers::Data("x", {-1, 4});
  {
    const CallSiteGuard outer("outer.py", 7);
    layers::Fc(x, 2);
    {
      const CallSiteGuard inner("inner.py", 9);
      layers::Relu(x);
    }
    layers::Relu(x);
  }
  layers::Relu(x);
  std::string sites;
  for (const auto& op : main_.root()->ops())
    sites += StrCat(op->site.file, ":", op->site.line, " ");
  const size_t unguarded = sites.find(__FILE__);
  ASSERT_NE(unguarded, std::string::npos) << sites;
  EXPECT_EQ(sites.substr(0, unguarded), "outer.py:7 outer.py:7 inner.py:9 outer.py:7 ");
  EXPECT_EQ(startup_.root()->ops().front()->site.file, "outer.py");
}

TEST_F(CallSite, ErrorsNameTheGuard) {
  const CallSiteGuard guard("script.py", 12);
  EXPECT_EQ(ErrorText([] { layers::Relu(Variable()); }),
            "script.py:12: relu: an input is an undefined Variable");
  EXPECT_EQ(ErrorText([] { layers::Data("", {1}); }).find("script.py:12: "), 0u);
  const Variable x = layers::Data("x", {1});
  EXPECT_EQ(ErrorText([&] { optimizer::Sgd().Minimize(x); }).find("script.py:12: "), 0u);
}

}  // namespace
}  // namespace skiff
