// Draws the arena of a plan.
#pragma once

#include <string>
#include <string_view>

#include "framework/analysis/memory_report.h"

namespace skiff {

// Returns an SVG file. Its horizontal axis has the instructions, its vertical axis the bytes of the
// arena. Each value and workspace is a box at its offset, from the instruction that writes it first
// to the last instruction that reads it; a line shows the bytes live at each instruction. A box
// under the mouse shows its variable, size, op and layer. Blocks without an offset are left out.
std::string RenderMemoryTimeline(std::string_view title, const MemoryReport& report);

}  // namespace skiff
