// The arena of a plan as a picture.
#pragma once

#include <string>
#include <string_view>

#include "framework/analysis/memory_report.h"

namespace skiff {

// An SVG file: to the right the instructions, upwards the bytes of the arena; each value and
// workspace is a box at its offset, from the instruction that writes it to the last one that reads
// it, and a line shows the bytes live at each instruction. A box under the mouse tells its
// variable, size, op and layer. Blocks without an offset are left out.
std::string RenderMemoryTimeline(std::string_view title, const MemoryReport& report);

}  // namespace skiff
