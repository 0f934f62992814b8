// Charts that respond: values at the pointer, series on and off, zoom. Without this script the page keeps its pictures.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const drawn = {};
  const family = getComputedStyle(document.body).fontFamily;

  // ---- numbers -----------------------------------------------------------------------------------------------------

  const raise = n => String(n).replace(/-/g, "⁻").replace(/\d/g, d => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);

  function number(value, digits) {
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1e-3 && size < 1e6) return String(+value.toPrecision(digits)).replace("-", "−");
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    const short = String(+mantissa).replace("-", "−");
    return (short === "1" ? "" : short + "·") + "10" + raise(+exponent);
  }

  const shown = (axis, value, digits) =>
    axis.percent ? number(100 * value, digits) + " %" : number(value, digits);

  // Beside an axis of many decades all numbers look alike.
  function tickWords(axis, tick) {
    const power = Math.log10(tick);
    const whole = Math.abs(power - Math.round(power)) < 1e-9;
    return axis.powers && whole && power !== 0 ? "10" + raise(Math.round(power)) : shown(axis, tick, 4);
  }

  // ---- axes --------------------------------------------------------------------------------------------------------

  // Powers of ten; some of them where there are many, 2 and 5 times them where there are few.
  function decades(min, max, most) {
    const [low, high] = [Math.log10(min), Math.log10(max)];
    const every = Math.max(1, Math.ceil((high - low) / most));
    const factors = high - low > 2 ? [1] : high - low > 0.7 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
    const ticks = [];
    for (let power = Math.floor(low / every) * every; power <= high; power += every)
      for (const factor of factors) {
        const tick = factor * 10 ** power;
        if (tick >= min * (1 - 1e-9) && tick <= max * (1 + 1e-9)) ticks.push(tick);
      }
    return ticks;
  }

  const steps = [];
  for (let power = -12; power <= 12; power++) for (const factor of [1, 2, 5]) steps.push(+(factor * 10 ** power).toPrecision(1));

  function axis(scale, described, space) {
    const plot = u => (scale === "x" ? u.bbox.width : u.bbox.height) / devicePixelRatio;
    const own = {
      scale,
      space,
      stroke: () => css("--soft"),
      font: `12px ${family}`,
      grid: { show: scale === "y", stroke: () => css("--line"), width: 1 },
      ticks: { show: scale === "x", stroke: () => css("--axis"), width: 1, size: 4 },
      border: { show: scale === "x", stroke: () => css("--axis"), width: 1 },
      gap: scale === "x" ? 4 : 8,
      incrs: described.whole ? steps.filter(step => step >= 1) : steps,
      values: (u, ticks) => ticks.map(tick => tickWords(described, tick)),
    };
    if (described.log) {
      own.splits = (u, _, min, max) => decades(min, max, Math.max(2, Math.floor(plot(u) / space)));
      own.filter = (u, ticks) => ticks;
    }
    if (scale === "x") own.size = 30;
    else own.size = (u, words) => 12 + 7 * Math.max(2, ...(words || []).map(word => word.length));
    return own;
  }

  // What the description asks for, until someone zooms or, where curves lie decades apart, switches one off.
  function ranges(chart, xs) {
    const zoomed = u => u.scales.x.min > chart.x.min || u.scales.x.max < chart.x.max;
    const x = (u, low, high) =>
      low === xs[0] && high === xs[xs.length - 1] ? [chart.x.min, chart.x.max] : [low, high];
    const y = (u, low, high) => {
      const fewer = chart.y.log && u.series.some(series => !series.show);
      if (low == null || !(fewer || (u.zoomed && zoomed(u)))) return [chart.y.min, chart.y.max];
      if (chart.y.log) return [low / 1.2, high * 1.2];
      const air = 0.05 * (high - low) || 0.05 * Math.abs(high) || 1;
      return [low - air, high + air];
    };
    return [x, y];
  }

  // ---- what uPlot has no word for: bands, marks, spreads and dots ----------------------------------------------------

  const place = (u, x, y) => [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];

  function clipped(u, draw) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - 6, bbox.width + 6, bbox.height + 12);
    ctx.clip();
    draw(ctx, bbox, devicePixelRatio);
    ctx.restore();
  }

  function words(ctx, pixels, text, x, y, align) {
    ctx.fillStyle = css("--soft");
    ctx.font = `${12 * pixels}px ${family}`;
    ctx.textBaseline = "top";
    ctx.textAlign = align;
    ctx.fillText(text, x, y);
  }

  function behind(u, chart) {
    clipped(u, (ctx, box, pixels) => {
      let named = null;
      for (const [from, to, name] of chart.bands) {
        const [left, right] = [u.valToPos(from, "x", true), u.valToPos(to, "x", true)].sort((a, b) => a - b);
        ctx.fillStyle = css("--band");
        ctx.fillRect(left, box.top, right - left, box.height);
        // Densities begin at the top, and little is at the bottom; with F it is the other way.
        const height = chart.y.percent ? box.top + box.height - 18 * pixels : box.top + 3 * pixels;
        if (name !== named) words(ctx, pixels, name, Math.max(left, box.left) + 5 * pixels, height, "left");
        named = name;
      }
      chart.series.forEach((series, at) => {
        if (!u.series[at + 1].show || series.spread.length < 2) return;
        ctx.beginPath();
        series.spread.forEach(([x, low]) => ctx.lineTo(...place(u, x, low)));
        [...series.spread].reverse().forEach(([x, , high]) => ctx.lineTo(...place(u, x, high)));
        ctx.globalAlpha = 0.16;
        ctx.fillStyle = colour(series);
        ctx.fill();
        ctx.globalAlpha = 1;
      });
    });
  }

  function before(u, chart) {
    clipped(u, (ctx, box, pixels) => {
      ctx.lineWidth = pixels;
      for (const { x, y, text } of chart.marks) {
        ctx.strokeStyle = css("--soft");
        ctx.setLineDash([4 * pixels, 4 * pixels]);
        ctx.beginPath();
        if (x != null) {
          const at = u.valToPos(x, "x", true);
          // Beside a neighbour the words turn away from it.
          const neighbour = chart.marks
            .map(mark => (mark.x == null ? 0 : u.valToPos(mark.x, "x", true) - at))
            .find(other => other !== 0 && Math.abs(other) < 90 * pixels);
          const late = neighbour != null ? neighbour > 0 : at > box.left + 0.7 * box.width;
          ctx.moveTo(at, box.top);
          ctx.lineTo(at, box.top + box.height);
          words(ctx, pixels, text, at + (late ? -5 : 5) * pixels, box.top + 3 * pixels, late ? "right" : "left");
        } else {
          const at = u.valToPos(y, "y", true);
          ctx.moveTo(box.left, at);
          ctx.lineTo(box.left + box.width, at);
          words(ctx, pixels, text, box.left + box.width - 4 * pixels, at + 3 * pixels, "right");
        }
        ctx.stroke();
      }
      ctx.setLineDash([]);
      ctx.lineWidth = 1.6 * pixels;
      chart.series.forEach((series, at) => {
        if (!u.series[at + 1].show) return;
        for (const [x, y, filled] of series.dots) {
          ctx.beginPath();
          ctx.arc(...place(u, x, y), 4 * pixels, 0, 2 * Math.PI);
          ctx.fillStyle = filled ? colour(series) : css("--card");
          ctx.strokeStyle = colour(series);
          ctx.fill();
          ctx.stroke();
        }
      });
    });
  }

  const colour = series => (dark.matches ? series.dark : series.light);

  // ---- values at the pointer -----------------------------------------------------------------------------------------

  const element = (tag, name, text) => Object.assign(document.createElement(tag), { className: name, textContent: text ?? "" });

  // The point of a series that is nearest to the pointer; none where the series has not begun or has ended.
  function nearest(u, at, x) {
    const [xs, ys] = [u.data[0], u.data[at]];
    const [first, last] = u.ends[at];
    if (first == null || x < xs[first] - u.slack || x > xs[last] + u.slack) return null;
    let best = null;
    for (let i = first; i <= last; i++)
      if (ys[i] != null && (best == null || Math.abs(xs[i] - x) < Math.abs(xs[best] - x))) best = i;
    return best;
  }

  function tell(u, chart, tip) {
    const { left, top, idxs } = u.cursor;
    const found = chart.series
      .map((series, at) => ({ series, i: idxs[at + 1], show: u.series[at + 1].show && series.name !== "" }))
      .filter(({ i, show }) => show && i != null);
    tip.hidden = left < 0 || !found.length;
    if (tip.hidden) return;
    const xs = new Set(found.map(({ i }) => u.data[0][i]));
    const own = xs.size > 1;
    const at = own ? u.posToVal(left, "x") : u.data[0][found[0].i];
    tip.replaceChildren(element("p", "", `${chart.x.label} ${shown(chart.x, at, chart.x.whole ? 9 : 4)}`));
    const rows = found.map(({ series, i }) => ({ series, y: u.data[chart.series.indexOf(series) + 1][i] }));
    rows.sort((a, b) => b.y - a.y);
    for (const { series, y } of rows) {
      const row = element("div", "row");
      const swatch = element("i", series.dashed ? "swatch dashed" : "swatch");
      swatch.style.cssText = `--light:${series.light};--dark:${series.dark}`;
      row.append(swatch, element("span", "name", series.name), element("b", "", shown(chart.y, y, 4)));
      tip.append(row);
    }
    const { width, height } = u.over.getBoundingClientRect();
    const [x0, y0] = [u.over.offsetLeft, u.over.offsetTop];
    const beside = left + 16 + tip.offsetWidth > width ? left - 16 - tip.offsetWidth : left + 16;
    tip.style.left = `${x0 + Math.max(-x0, beside)}px`;
    tip.style.top = `${y0 + Math.max(0, Math.min(top - tip.offsetHeight / 2, height - tip.offsetHeight))}px`;
  }

  // ---- a chart ---------------------------------------------------------------------------------------------------------

  function build(id, chart) {
    const holder = document.getElementById(id);
    if (!holder) return;
    const data = uPlot.join(chart.series.map(series => [series.x, series.y]));
    const [xRange, yRange] = ranges(chart, data[0]);
    const scale = (described, range) => ({
      time: false,
      distr: described.log ? 3 : 1,
      dir: described.reversed ? -1 : 1,
      range,
    });
    const tip = element("div", "tip");
    tip.hidden = true;
    const size = () => ({ width: holder.clientWidth, height: holder.clientWidth < 480 ? 250 : 300 });
    holder.replaceChildren();
    const u = new uPlot(
      {
        ...size(),
        padding: [10, 20, 0, 4],
        legend: { show: false },
        focus: { alpha: 0.25 },
        cursor: {
          y: false,
          focus: { prox: 20 },
          points: { size: 8, width: 2, stroke: (u, at) => colour(chart.series[at - 1]), fill: () => css("--card") },
          drag: { x: true, y: false, dist: 8 },
          dataIdx: (u, at, i, x) => (at === 0 ? i : nearest(u, at, x)),
        },
        scales: { x: scale(chart.x, xRange), y: scale(chart.y, yRange) },
        axes: [axis("x", chart.x, 64), axis("y", chart.y, 42)],
        series: [
          {},
          ...chart.series.map(series => ({
            label: series.name,
            stroke: () => colour(series),
            width: series.thin ? 0.8 : 2,
            dash: series.dashed ? [6, 4] : undefined,
            spanGaps: true,
            paths: series.shape === "points" ? () => null : series.shape === "step" ? uPlot.paths.stepped({ align: 1 }) : undefined,
            points: { show: series.shape === "points" || series.few, size: 5.5, fill: () => colour(series) },
          })),
        ],
        hooks: {
          init: [u => {
            u.ends = data.map(ys => {
              const first = ys.findIndex(y => y != null);
              return first < 0 ? [null, null] : [first, ys.findLastIndex(y => y != null)];
            });
            u.slack = 0.01 * (chart.x.max - chart.x.min);
          }],
          drawClear: [u => behind(u, chart)],
          draw: [u => before(u, chart)],
          setSelect: [u => (u.zoomed = true)],
          setCursor: [u => tell(u, chart, tip)],
        },
      },
      data,
      holder,
    );
    u.over.addEventListener("dblclick", () => (u.zoomed = false));
    u.root.querySelector(".u-wrap").append(tip);
    if (chart.y.label) holder.prepend(element("p", "label", chart.y.label));
    holder.append(element("p", "label x", chart.x.label));
    new ResizeObserver(() => holder.clientWidth !== u.width && u.setSize(size())).observe(holder);
    drawn[id] = u;
  }

  for (const [id, chart] of Object.entries(charts)) build(id, chart);
  dark.addEventListener("change", () => Object.values(drawn).forEach(u => u.redraw(false)));

  // ---- series on and off -----------------------------------------------------------------------------------------------

  for (const legend of document.querySelectorAll(".legend")) {
    const of = legend.dataset.charts.split(" ").filter(id => drawn[id]);
    for (const button of legend.querySelectorAll("button")) {
      const each = act => of.forEach(id => {
        const at = charts[id].series.findIndex(series => series.name === button.dataset.series);
        if (at >= 0) act(drawn[id], at + 1);
      });
      button.addEventListener("click", () => {
        const show = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", show);
        each((u, at) => u.setSeries(at, { show }));
      });
      button.addEventListener("pointerenter", () => each((u, at) => u.setSeries(at, { focus: true })));
      button.addEventListener("pointerleave", () => each(u => u.setSeries(null, { focus: true })));
    }
  }

  for (const button of document.querySelectorAll(".command button")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
  }

  document.documentElement.classList.add("alive");
})();
