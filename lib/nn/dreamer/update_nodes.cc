#include "lib/nn/dreamer/update_nodes.h"

namespace tetrion {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// A node keeps numbers: the backward pass may run on a thread of the tensor library's own.
constexpr char kKernels[] = "kernels", kWidth[] = "width";

void Keep(AutogradContext* context, UpdateKernels& kernels) {
  context->saved_data[kKernels] =
      static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&kernels));
}
UpdateKernels& Kept(AutogradContext* context) {
  return *reinterpret_cast<UpdateKernels*>(  // what Keep was given
      static_cast<std::intptr_t>(context->saved_data[kKernels].toInt()));
}

class NormSiluOnDeviceNode : public Function<NormSiluOnDeviceNode> {
 public:
  // x [N, W].
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& scale,
                        UpdateKernels* kernels, const std::optional<Tensor>& /*anchor*/,
                        const KeptStepsPointer& steps) {
    Keep(context, steps);
    const Tensor y = torch::empty_like(x), slope = torch::empty_like(x);
    const Tensor inverse = torch::empty({x.size(0)}, x.options());
    kernels->NormSiluForward(x.const_data_ptr<float>(), x.size(0), x.size(1),
                             scale.const_data_ptr<float>(), y.mutable_data_ptr<float>(),
                             slope.mutable_data_ptr<float>(), inverse.mutable_data_ptr<float>());
    context->save_for_backward({x, scale, slope, inverse});
    Keep(context, *kernels);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &scale = saved[1];
    const Tensor grad = gradients[0].contiguous(), grad_x = torch::empty_like(x);
    const Tensor parts = torch::empty({NormSiluParts(x.size(0)), x.size(1)}, x.options());
    Kept(context).NormSiluBackward(
        grad.const_data_ptr<float>(), x.const_data_ptr<float>(), x.size(0), x.size(1),
        scale.const_data_ptr<float>(), saved[2].const_data_ptr<float>(),
        saved[3].const_data_ptr<float>(), grad_x.mutable_data_ptr<float>(),
        parts.mutable_data_ptr<float>());
    Tensor grad_scale;
    if (const KeptStepsPointer kept = KeptOf(context)) {
      kept->scales.push_back(parts);
    } else {
      grad_scale = parts.sum(0);
    }
    return {grad_x, grad_scale, Tensor(), Tensor(), Tensor()};
  }
};

class GruOnDeviceNode : public Function<GruOnDeviceNode> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& gates, const Tensor& deter,
                        std::int64_t blocks, UpdateKernels* kernels) {
    const Tensor all = gates.contiguous(), old = deter.contiguous();
    const Tensor out = torch::empty_like(old), parts = torch::empty_like(all);
    const std::int64_t width = old.size(-1) / blocks;
    kernels->GruForward(all.const_data_ptr<float>(), old.const_data_ptr<float>(),
                        old.numel() / width, width, out.mutable_data_ptr<float>(),
                        parts.mutable_data_ptr<float>());
    context->save_for_backward({all, old, parts});
    context->saved_data[kWidth] = width;
    Keep(context, *kernels);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &gates = saved[0], &deter = saved[1];
    const Tensor grad = gradients[0].contiguous();
    const Tensor grad_gates = torch::empty_like(gates), grad_deter = torch::empty_like(deter);
    const std::int64_t width = context->saved_data[kWidth].toInt();
    Kept(context).GruBackward(grad.const_data_ptr<float>(), gates.const_data_ptr<float>(),
                              deter.const_data_ptr<float>(), saved[2].const_data_ptr<float>(),
                              deter.numel() / width, width, grad_gates.mutable_data_ptr<float>(),
                              grad_deter.mutable_data_ptr<float>());
    return {grad_gates, grad_deter, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor NormSiluOnDevice(const Tensor& x, const Tensor& scale, UpdateKernels& kernels,
                        const StepSlopes& steps) {
  const Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  // Without gradient nothing is kept.
  if (!torch::GradMode::is_enabled() || !(x.requires_grad() || scale.requires_grad())) {
    const Tensor y = torch::empty_like(rows);
    const Tensor inverse = torch::empty({rows.size(0)}, rows.options());
    kernels.NormSiluForward(rows.const_data_ptr<float>(), rows.size(0), rows.size(1),
                            scale.const_data_ptr<float>(), y.mutable_data_ptr<float>(),
                            /*slope=*/nullptr, inverse.mutable_data_ptr<float>());
    return y.reshape(x.sizes());
  }
  return NormSiluOnDeviceNode::apply(rows, scale, &kernels, Optional(steps.anchor()), steps.kept())
      .reshape(x.sizes());
}

Tensor GruStepOnDevice(const Tensor& gates, const Tensor& deter, std::int64_t blocks,
                       UpdateKernels& kernels) {
  return GruOnDeviceNode::apply(gates, deter, blocks, &kernels);
}

Tensor DrawOneHotsOnDevice(const Tensor& log_probs, const UpdateDraw& draw,
                           UpdateKernels& kernels) {
  const torch::NoGradGuard no_gradient;
  const Tensor probs = log_probs.detach().exp().contiguous();
  const Tensor out = torch::empty_like(probs);
  const std::int64_t classes = probs.size(-1);
  kernels.DrawOneHots(probs.const_data_ptr<float>(), probs.numel() / classes, classes, draw,
                      out.mutable_data_ptr<float>());
  return out;
}

}  // namespace tetrion
