#include "framework/training/stop_request.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>

namespace skiff::training {
namespace {

// As two trainers in two threads do.
TEST(StopRequest, SeveralPutBackTheHandlersInAnyOrder) {
  const auto handler = [] {
    struct sigaction now {};
    sigaction(SIGINT, nullptr, &now);
    return now.sa_handler;
  };
  const auto before = handler();
  auto first = std::make_unique<StopRequest>();
  auto second = std::make_unique<StopRequest>();
  raise(SIGINT);
  EXPECT_EQ(first->signal(), SIGINT);
  EXPECT_EQ(second->signal(), SIGINT);
  first.reset();
  second.reset();
  EXPECT_EQ(handler(), before);
  EXPECT_EQ(StopRequest().signal(), 0);
}

}  // namespace
}  // namespace skiff::training
