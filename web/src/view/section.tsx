import type { ComponentChildren } from "preact";
import type { Chart } from "../model/chart";
import type { Table } from "../model/table";
import { ChartFrame } from "./chart_frame";
import { Grid } from "./grid";

/** How high charts are, pixels: `overview` ones are beside each other on the first screen, `small` ones are many. */
const HEIGHTS = { large: 230, overview: 210, small: 160 };

interface SectionProps {
  title: string;
  charts: Chart[];
  tables?: Table[];
  /** Tables that have a chart's place. */
  beside?: Table[];
  kind?: keyof typeof HEIGHTS;
  /** What is above the charts. */
  children?: ComponentChildren;
}

/** Charts and tables under a heading; nothing where none of them has anything. */
export function Section({ title, charts, tables = [], beside = [], kind = "large", children }: SectionProps) {
  const seen = charts.filter(isDrawn);
  const [filled, own] = [tables, beside].map((some) => some.filter(({ rows }) => rows.length > 0)) as [Table[], Table[]];
  if (seen.length + filled.length + own.length === 0) return null;
  return (
    <section class={`part ${kind}`} aria-label={title}>
      <h2>{title}</h2>
      {children}
      <div class={`charts ${kind}`}>
        {seen.map((chart) => <ChartFrame key={chart.id} chart={chart} height={HEIGHTS[kind]} />)}
        {own.length > 0 && <div class="beside">{own.map((table) => <Grid key={table.id} table={table} />)}</div>}
      </div>
      <div class="tables">{filled.map((table) => <Grid key={table.id} table={table} />)}</div>
    </section>
  );
}

const isDrawn = ({ lines, cells }: Chart) => lines.length > 0 || (cells ?? []).length > 0;
