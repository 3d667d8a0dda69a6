#pragma once

namespace skiff {

// The position of the channels in a plain batch of images.
enum class ChannelOrder { kFirst, kLast };

}  // namespace skiff
