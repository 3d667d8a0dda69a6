// The C++ of README.md, unchanged, trains a network.
#include <gtest/gtest.h>

#include <vector>

#include "models/common/generated_images.h"
#include "models/common/image_source.h"
#include "tests/readme/example_head.inc"

namespace {

TEST(Readme, ItsExampleTrains) {
  const models::ImageDataset images =
      models::GenerateImages({.images = 24, .channels = 1, .height = 28, .width = 28});
  const models::ImageSource source(&images, models::MeasureNormalization(images));
  training::SampleReader reader(&source, {.batch_size = 8});

#include "tests/readme/example_body.inc"

  EXPECT_EQ(exe.scope().Get(kStepCounterName).Item<int64_t>(), 3);
  reader.StartEpoch(0);
  ASSERT_TRUE(reader.Next(&batch));
  const float trained = step.Run(batch.feeds, {loss})[0].Item<float>();
  Executor untrained;
  untrained.Run(startup);
  const float at_first = untrained.Run(main, batch.feeds, {loss})[0].Item<float>();
  EXPECT_LT(trained, at_first);
}

}  // namespace
