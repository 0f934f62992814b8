//! A start from smoother losses, where the loss at hand is flat for most rows.
//!
//! Beyond its δ Huber's loss has no curvature, and where targets are a million δ no row has any: there is nothing to step
//! by. A loss that is quadratic over a wider range has, and its optimum lies near that of the next, less wide one. So the
//! width falls from what the targets span to that of the loss itself, each optimum the start of the next.

use super::Auto;
use crate::Result;
use crate::observe::{Control, Progress, Stage};
use crate::problem::Problem;
use crate::solver::{Ended, Solver};
use crate::tuning::smooth::{FALL, ROUGHLY, ROUNDS, WIDEST, WORTH_IT};

impl Auto<'_> {
    /// Moves to the optimum of a loss nearly as flat as the one at hand; whether it did. Where `tell` says stop the point so
    /// far will do.
    pub(super) fn start_from_smoother_losses(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Result<bool> {
        let problem = self.given;
        let unit = problem.margin_unit();
        let Some((low, high)) = problem.loss().slope_range(problem.targets()[0]) else { return Ok(false) };
        let (mut width, mut stop) = (WIDEST * unit, false);
        let mut point = self.point();
        while let Some(loss) = problem.loss().smoother(width).filter(|_| !stop) {
            let smooth = problem.with_loss(loss)?;
            let Ok(auto) = Auto::new(&smooth, Some(&point), None) else { return Ok(false) };
            let mut auto = auto.aiming_at(0.0);
            for _ in 0..ROUNDS {
                let ended = auto.epoch(&mut |progress| {
                    let said = tell(Progress { epoch: 1, stage: Some(Stage::Identify), ..progress });
                    stop |= said == Control::Stop;
                    said
                })?;
                let enough = ROUGHLY * width * low.abs().max(high.abs());
                let near = |certificate: &crate::Certificate| certificate.gap.is_some_and(|gap| gap <= enough);
                if stop || auto.certificate.as_ref().is_some_and(near) || !matches!(ended, Ended::Epoch) {
                    break;
                }
            }
            let found = auto.point();
            if !found.is_finite() {
                break;
            }
            self.history.steps += auto.history.steps;
            point = found;
            width /= FALL;
        }
        self.point = self.reduced.shrink(&point);
        (self.fall.stage, self.fall.stretch) = (Stage::Identify, 1.0);
        Ok(true)
    }
}

/// Whether the loss is flat that far out that smoother ones are needed to begin with.
pub(super) fn pays(problem: &Problem) -> bool {
    let is_bounded = problem.loss().slope_range(problem.targets()[0]).is_some();
    is_bounded && problem.loss().smoother(problem.margin_unit() / WORTH_IT).is_some()
}
