#include "lib/nn/dreamer/layer_nodes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lib/nn/dense_kernels.h"
#include "lib/nn/dreamer/linear_kernels.h"
#include "lib/nn/dreamer/norm_silu.h"

namespace tetrion {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Below so many rows the weight costs more to transpose than the product takes.
constexpr std::int64_t kFewRows = 32;

// x [N, in] W^T + b -> [N, out]; with `scale` also what its activation leaves: y, and where `slope`
// is defined the slope and the rows' factors.
struct Activation {
  Tensor y, slope, inverse;
};

void Activate(const Tensor& pre, const Tensor& scale, std::int64_t begin, std::int64_t end,
              const Activation& out) {
  const std::int64_t width = pre.size(1);
  std::vector<float> factors(out.inverse.defined() ? 0 : static_cast<std::size_t>(end - begin));
  float* inverse =
      out.inverse.defined() ? out.inverse.mutable_data_ptr<float>() + begin : factors.data();
  NormSiluForward(
      pre.const_data_ptr<float>() + begin * width, end - begin, width,
      scale.const_data_ptr<float>(), out.y.mutable_data_ptr<float>() + begin * width,
      out.slope.defined() ? out.slope.mutable_data_ptr<float>() + begin * width : nullptr, inverse);
}

// Fills `pre` [N, out], and `out` where there is a scale.
void Forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& scale,
             const Tensor& pre, const Activation& out) {
  const std::int64_t rows = x.size(0), in = x.size(1), width = weight.size(0);
  if (rows < kFewRows) {
    at::addmm_out(const_cast<Tensor&>(pre), bias, x, weight.t());
    if (scale.defined()) Activate(pre, scale, 0, rows, out);
    return;
  }
  const Tensor packed = torch::empty({in, width}, x.options());
  const DenseKernels& kernels = BestDenseKernels();
  kernels.transpose(weight.const_data_ptr<float>(), width, in, packed.mutable_data_ptr<float>());
  ForFewRows(rows, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    kernels.multiply(bias.const_data_ptr<float>(), x.const_data_ptr<float>() + begin * in, in,
                     end - begin, in, packed.const_data_ptr<float>(), width, width,
                     pre.mutable_data_ptr<float>() + begin * width, width);
    if (scale.defined()) Activate(pre, scale, begin, end, out);
  });
}

// Slopes of what Activate has made of `pre`. A piece of rows has a sum of its own for the scale's,
// however many threads there are: [pieces, out].
struct ActivationSlopes {
  Tensor pre, scale_parts;
};

ActivationSlopes ActivateBack(const Tensor& grad, const Tensor& pre, const Tensor& scale,
                              const Activation& kept) {
  constexpr std::int64_t kPieces = 8;
  const std::int64_t rows = pre.size(0), width = pre.size(1);
  const Tensor grad_pre = torch::empty_like(pre);
  const Tensor sums = torch::zeros({kPieces, width}, pre.options());
  const std::int64_t least = rows < kPieces * kRowsAtOnce ? kPieces : 1;  // too few to share
  ForRows(kPieces, least, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t row = rows * piece / kPieces, last = rows * (piece + 1) / kPieces;
      const std::int64_t at = row * width;
      NormSiluBackward(
          grad.const_data_ptr<float>() + at, pre.const_data_ptr<float>() + at, last - row, width,
          scale.const_data_ptr<float>(), kept.slope.const_data_ptr<float>() + at,
          kept.inverse.const_data_ptr<float>() + row, grad_pre.mutable_data_ptr<float>() + at,
          sums.mutable_data_ptr<float>() + piece * width);
    }
  });
  return {grad_pre, sums};
}

// What a node takes of a StepSlopes.
using Anchor = std::optional<Tensor>;

Tensor BlockWeightSlope(const Tensor& x, const Tensor& shared, const Tensor& slope,
                        const Tensor& weight) {
  const std::int64_t rows = x.size(0), blocks = weight.size(0), out = weight.size(2);
  const std::int64_t in = x.size(1) / blocks, common = weight.size(1) - in;
  const Tensor grad = torch::zeros_like(weight);
  for (std::int64_t g = 0; g < blocks; ++g) {
    const float* of_block = slope.const_data_ptr<float>() + g * out;
    float* to = grad.mutable_data_ptr<float>() + g * (in + common) * out;
    OuterRows(x.const_data_ptr<float>() + g * in, blocks * in, rows, in, of_block, blocks * out,
              out, to, out);
    if (common == 0) continue;
    OuterRows(shared.const_data_ptr<float>(), common, rows, common, of_block, blocks * out, out,
              to + in * out, out);
  }
  return grad;
}

class DenseFunction : public Function<DenseFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const std::optional<Tensor>& given_scale,
                        const Anchor& /*anchor*/, const KeptStepsPointer& steps) {
    Keep(context, steps);
    const Tensor scale = given_scale.value_or(Tensor());
    const Tensor pre = torch::empty({x.size(0), weight.size(0)}, x.options());
    Activation out;
    if (scale.defined()) {
      out = {torch::empty_like(pre), torch::empty_like(pre),
             torch::empty({x.size(0)}, x.options())};
    }
    Forward(x, weight, bias, scale, pre, out);
    if (!scale.defined()) {
      context->save_for_backward({x, weight});
      return pre;
    }
    context->save_for_backward({x, weight, scale, pre, out.slope, out.inverse});
    return out.y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    Tensor grad = gradients[0].contiguous(), scale_parts, grad_x;
    const std::int64_t rows = x.size(0), in = x.size(1), width = weight.size(0);
    if (saved.size() > 2) {
      const ActivationSlopes slopes =
          ActivateBack(grad, saved[3], saved[2], {.y = {}, .slope = saved[4], .inverse = saved[5]});
      grad = slopes.pre;
      scale_parts = slopes.scale_parts;
    }
    const float* g = grad.const_data_ptr<float>();
    if (context->needs_input_grad(0)) {
      grad_x = torch::empty_like(x);
      MultiplyRows(torch::zeros({in}).const_data_ptr<float>(), g, width, rows, width,
                   weight.const_data_ptr<float>(), in, in, grad_x.mutable_data_ptr<float>(), in);
    }
    if (const KeptStepsPointer kept = KeptOf(context)) {
      kept->inputs.push_back(x.detach());
      kept->slopes.push_back(grad);
      if (scale_parts.defined()) kept->scales.push_back(scale_parts);
      return {grad_x, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
    }
    const Tensor grad_scale = scale_parts.defined() ? scale_parts.sum(0) : Tensor();
    return {grad_x,  PlainWeightSlope(x, {}, grad, weight), SumOfRows(grad), grad_scale, Tensor(),
            Tensor()};
  }
};

class NormSiluFunction : public Function<NormSiluFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& scale,
                        const Anchor& /*anchor*/, const KeptStepsPointer& steps) {
    Keep(context, steps);
    const Activation out = {torch::empty_like(x), torch::empty_like(x),
                            torch::empty({x.size(0)}, x.options())};
    ForRows(x.size(0), kRowsAtOnce,
            [&](std::int64_t begin, std::int64_t end) { Activate(x, scale, begin, end, out); });
    context->save_for_backward({x, scale, out.slope, out.inverse});
    return out.y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const ActivationSlopes slopes = ActivateBack(gradients[0].contiguous(), saved[0], saved[1],
                                                 {.y = {}, .slope = saved[2], .inverse = saved[3]});
    if (const KeptStepsPointer kept = KeptOf(context)) {
      kept->scales.push_back(slopes.scale_parts);
      return {slopes.pre, Tensor(), Tensor(), Tensor()};
    }
    return {slopes.pre, slopes.scale_parts.sum(0), Tensor(), Tensor()};
  }
};

class BlockFunction : public Function<BlockFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x,
                        const std::optional<Tensor>& given_shared, const Tensor& weight,
                        const Tensor& bias, const Anchor& /*anchor*/,
                        const KeptStepsPointer& steps) {
    Keep(context, steps);
    const Tensor shared = given_shared.value_or(Tensor());
    const Sizes s(x, shared, weight);
    const Tensor y = torch::empty({s.rows, s.blocks * s.out}, x.options());
    float* to = y.mutable_data_ptr<float>();
    const float* start = bias.const_data_ptr<float>();
    const float* from = x.const_data_ptr<float>();
    const float* common = s.shared == 0 ? nullptr : shared.const_data_ptr<float>();
    const std::int64_t ldx = s.blocks * s.in, ldy = s.blocks * s.out;
    const std::int64_t piece = (s.in + s.shared) * s.out;
    const DenseKernels& kernels = BestDenseKernels();
    ForFewRows(s.rows, GrainOf(s.blocks * piece), [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t count = end - begin;
      const float* w = weight.const_data_ptr<float>();
      for (std::int64_t g = 0; g < s.blocks; ++g, w += piece) {
        float* out = to + begin * ldy + g * s.out;
        kernels.multiply(start + g * s.out, from + begin * ldx + g * s.in, ldx, count, s.in, w,
                         s.out, s.out, out, ldy);
        if (common == nullptr) continue;
        kernels.multiply(nullptr, common + begin * s.shared, s.shared, count, s.shared,
                         w + s.in * s.out, s.out, s.out, out, ldy);
      }
    });
    context->save_for_backward({x, shared, weight});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &shared = saved[1], &weight = saved[2];
    const Sizes s(x, shared, weight);
    const Tensor grad = gradients[0].contiguous();
    const Tensor grad_x = torch::empty_like(x);
    const Tensor grad_shared = s.shared == 0 ? Tensor() : torch::empty_like(shared);
    const std::int64_t in = s.in + s.shared, piece = in * s.out;
    const Tensor zeros = torch::zeros({in});
    const float* zero = zeros.const_data_ptr<float>();
    const Tensor packed = torch::empty({s.out, in}, x.options());
    float* back = packed.mutable_data_ptr<float>();
    for (std::int64_t g = 0; g < s.blocks; ++g) {
      const float* of_block = grad.const_data_ptr<float>() + g * s.out;
      const std::int64_t ld = s.blocks * s.out;
      BestDenseKernels().transpose(weight.const_data_ptr<float>() + g * piece, in, s.out, back);
      MultiplyRows(zero, of_block, ld, s.rows, s.out, back, in, s.in,
                   grad_x.mutable_data_ptr<float>() + g * s.in, s.blocks * s.in);
      if (s.shared == 0) continue;
      MultiplyRows(g == 0 ? zero : nullptr, of_block, ld, s.rows, s.out, back + s.in, in, s.shared,
                   grad_shared.mutable_data_ptr<float>(), s.shared);
    }
    if (const KeptStepsPointer kept = KeptOf(context)) {
      kept->inputs.push_back(x.detach());
      if (shared.defined()) kept->shared.push_back(shared.detach());
      kept->slopes.push_back(grad);
      return {grad_x, grad_shared, Tensor(), Tensor(), Tensor(), Tensor()};
    }
    return {grad_x,          grad_shared, BlockWeightSlope(x, shared, grad, weight),
            SumOfRows(grad), Tensor(),    Tensor()};
  }

 private:
  struct Sizes {
    Sizes(const Tensor& x, const Tensor& common, const Tensor& weight)
        : rows(x.size(0)),
          blocks(weight.size(0)),
          in(x.size(1) / blocks),
          shared(common.defined() ? common.size(1) : 0),
          out(weight.size(2)) {}
    std::int64_t rows, blocks, in, shared, out;
  };
};

}  // namespace

Tensor LayerNode(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& scale,
                 const StepSlopes& steps) {
  const Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  // Without gradient nothing is kept, and the activation overwrites the product.
  if (!torch::GradMode::is_enabled() || !(weight.requires_grad() || x.requires_grad())) {
    const Tensor y = torch::empty({rows.size(0), weight.size(0)}, rows.options());
    Forward(rows, weight, bias, scale, y, {.y = y, .slope = {}, .inverse = {}});
    return y.reshape(shape);
  }
  return DenseFunction::apply(rows, weight, bias, Optional(scale), Optional(steps.anchor()),
                              steps.kept())
      .reshape(shape);
}

Tensor NormSiluNode(const Tensor& x, const Tensor& scale, const StepSlopes& steps) {
  return NormSiluFunction::apply(x.reshape({-1, x.size(-1)}).contiguous(), scale,
                                 Optional(steps.anchor()), steps.kept())
      .reshape(x.sizes());
}

Tensor BlockLayerNode(const Tensor& x, const Tensor& shared, const Tensor& weight,
                      const Tensor& bias, const StepSlopes& steps) {
  return BlockFunction::apply(x.contiguous(),
                              Optional(shared.defined() ? shared.contiguous() : shared), weight,
                              bias, Optional(steps.anchor()), steps.kept());
}

Tensor PlainWeightSlope(const Tensor& x, const Tensor& shared, const Tensor& slope,
                        const Tensor& weight) {
  if (weight.dim() == 3) return BlockWeightSlope(x, shared, slope, weight);
  const std::int64_t in = weight.size(1), out = weight.size(0);
  const Tensor grad = torch::zeros_like(weight);
  OuterRows(slope.const_data_ptr<float>(), out, x.size(0), out, x.const_data_ptr<float>(), in, in,
            grad.mutable_data_ptr<float>(), in);
  return grad;
}

Tensor SumOfRows(const Tensor& slope) {
  const Tensor sum = torch::empty({slope.size(1)}, slope.options());
  SumRows(slope.const_data_ptr<float>(), slope.size(0), slope.size(1),
          sum.mutable_data_ptr<float>());
  return sum;
}

}  // namespace tetrion
