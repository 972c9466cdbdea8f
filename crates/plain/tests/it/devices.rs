//! A few steps of training on other devices, beside the processor. Not in the default set: it wants a feature
//! and a driver.

#[cfg(feature = "wgpu")]
#[test]
fn a_graphics_processor_learns_like_the_processor() {
    use gct::model::{Config, Learner, Learning, Model, TapeLearner};
    use gct::question::HeadConfig;
    use gct_plain::{Device, Plain};

    use crate::both_paths::{batch, rows};

    let (batch, head) = (batch(false), HeadConfig::Edges { initial_bias: -3.0, kinds: true });
    let model = || Model::<f32>::new(&Config::named("gct").unwrap(), &head, rows(), 3).unwrap();
    let mut tape = TapeLearner::new(model());
    let mut plain = Plain::new(model(), &Device::wgpu(Default::default()));
    for step in 0..5 {
        let ours = tape.step(&batch, Learning::new(1e-3, step)).prediction;
        let theirs = plain.step(&batch, Learning::new(1e-3, step)).prediction;
        println!("step {step}: loss {ours:.6} here, {theirs:.6} there");
        // Adam's first steps are as large for a gradient that is nothing but rounding as for any other.
        let tolerance = if step == 0 { 1e-5 } else { 1e-2 };
        assert!((ours - theirs).abs() < tolerance * ours.abs(), "step {step}: {ours} {theirs}");
    }
}
