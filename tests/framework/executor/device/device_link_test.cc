// The link of plans on the CPU, which have no device.
#include "framework/executor/device/device_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skiff {
namespace {

TEST(DeviceLink, OfTheHostHasNothingToWaitFor) {
  DeviceLink& link = *DeviceLink::Host();
  EXPECT_FALSE(link.has_device());
  EXPECT_TRUE(link.place().is_cpu());
  EXPECT_EQ(link.context().stream, nullptr);
  const std::unique_ptr<DeviceEvent> event = link.MakeEvent();
  EXPECT_EQ(event, nullptr);
  link.Record(event.get());
  link.Await(event.get());
  link.NoteUnfinishedRun();
  EXPECT_EQ(link.unfinished_run(), nullptr);
  link.NoteUseOfHost();
  link.AwaitHost();
  link.Wait();
  link.WaitQuietly();
  EXPECT_EQ(link.WorkingSeconds(), 0);
}

TEST(DeviceLink, OfTheHostCopiesAtOnce) {
  const Tensor from = Tensor::FromValues<float>({2}, {1, 2});
  Tensor to({2}, DType::kFloat32);
  DeviceLink::Host()->Copy(from, &to);
  EXPECT_THAT(to.ToVector<float>(), ::testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace skiff
