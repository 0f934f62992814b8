//! Settings → the optimizer of a whole network, each parameter with its own λ.

use std::collections::BTreeMap;

use burn::module::{ParamGroup, ParamId};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{ModuleOptimizer, Optimizer};
use obprox::MethodKind;

use super::Settings;
use crate::net::NamedParam;
use crate::optim::{ObproxSgConfig, Penalized, PhaseCell, ProxSgConfig, RdaConfig, SmoothConfig};

/// The optimizer; where the method switches, `phase` tells it to.
pub fn optimizer(settings: &Settings, params: &[NamedParam], phase: &PhaseCell) -> ModuleOptimizer {
    // λ was decided on by name, so it holds whatever the parameter's rank.
    let all = Penalized::All;
    match settings.method {
        MethodKind::Rda => {
            grouped(settings, params, |lambda| RdaConfig::new(lambda, settings.gamma).with_penalized(all).build())
        }
        MethodKind::ObproxSg | MethodKind::ObproxSgPlus => grouped(settings, params, |lambda| {
            let config = ObproxSgConfig::new(lambda, 0).with_penalized(all).with_smooth(smooth(settings));
            config.build_told(phase.clone())
        }),
        // Prox-SVRG steps as Prox-SG does, along a reduced gradient.
        MethodKind::ProxSg | MethodKind::ProxSvrg | MethodKind::Auto => grouped(settings, params, |lambda| {
            ProxSgConfig::new(lambda).with_penalized(all).with_smooth(smooth(settings)).build()
        }),
    }
}

fn smooth(settings: &Settings) -> SmoothConfig {
    let momentum = settings.momentum;
    SmoothConfig::new()
        // Without dampening, as PyTorch has it.
        .with_momentum((momentum > 0.0).then(|| MomentumConfig::new().with_momentum(momentum).with_dampening(0.0)))
        .with_weight_decay(settings.weight_decay)
}

fn grouped<O: Optimizer>(settings: &Settings, params: &[NamedParam], build: impl Fn(f64) -> O) -> ModuleOptimizer {
    let mut groups: BTreeMap<u64, Vec<ParamId>> = BTreeMap::new();
    for param in params {
        let lambda = settings.penalty.of(&param.name, param.rank);
        groups.entry(lambda.to_bits()).or_default().push(param.id);
    }
    groups.into_iter().fold(ModuleOptimizer::from(build(0.0)), |optimizer, (lambda, ids)| {
        optimizer.with_group(ParamGroup::from_ids(ids), build(f64::from_bits(lambda)), None)
    })
}
