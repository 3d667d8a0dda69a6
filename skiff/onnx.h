// The public C++ API for models of ONNX: ImportOnnx and ExportOnnx. Programs that call these link
// libskiff_onnx beside libskiff.
#pragma once

#include "framework/onnx/export.h"
#include "framework/onnx/import.h"
