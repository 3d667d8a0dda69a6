#include "framework/base/place.h"

#include <gtest/gtest.h>

#include "framework/base/error.h"

namespace skiff {
namespace {

TEST(Place, NamesReadBack) {
  for (Place place : {Place::Cpu(), Place::Cuda(0), Place::Cuda(1), Place::Cuda(15)}) {
    EXPECT_EQ(Place::FromName(PlaceName(place)), place);
  }
  EXPECT_EQ(PlaceName(Place::Cpu()), "cpu");
  EXPECT_EQ(PlaceName(Place::Cuda(3)), "cuda:3");
}

TEST(Place, CudaAloneIsTheFirstDevice) { EXPECT_EQ(Place::FromName("cuda"), Place::Cuda(0)); }

TEST(Place, RefusesOtherNames) {
  for (const char* name :
       {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "cuda:99999999999"}) {
    EXPECT_THROW(Place::FromName(name), Error) << name;
  }
}

TEST(Place, DiffersByKindAndDevice) {
  EXPECT_NE(Place::Cpu(), Place::Cuda());
  EXPECT_NE(Place::Cuda(0), Place::Cuda(1));
  EXPECT_TRUE(Place::Cpu().is_cpu());
  EXPECT_FALSE(Place::Cuda().is_cpu());
}

}  // namespace
}  // namespace skiff
