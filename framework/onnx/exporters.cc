#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {

const ExporterTable& ExporterTable::All() {
  static const ExporterTable& table = *[] {
    auto* all = new ExporterTable;
    AddUnaryExporters(all);
    AddBinaryExporters(all);
    AddShapeExporters(all);
    AddSliceExporters(all);
    AddFillExporters(all);
    AddIndexExporters(all);
    AddReductionExporters(all);
    AddProductExporters(all);
    AddNormalizationExporters(all);
    AddConvolutionExporters(all);
    AddPoolingExporters(all);
    AddImageExporters(all);
    AddAttentionExporters(all);
    AddRecurrentExporters(all);
    AddSequenceExporters(all);
    AddRaggedRecurrentExporters(all);
    AddArrayExporters(all);
    AddControlExporters(all);
    return all;
  }();
  return table;
}

const ExporterEntry* ExporterTable::Find(std::string_view type) const {
  const auto found = entries_.find(type);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace skiff::onnx_export
