import type { ComponentChildren } from "preact";
import type { Chart } from "../model/chart";
import type { Table } from "../model/table";
import { ChartFrame } from "./chart_frame";
import { Grid } from "./grid";

interface SectionProps {
  title: string;
  charts: Chart[];
  tables?: Table[];
  small?: boolean;
  /** What is above the charts. */
  children?: ComponentChildren;
}

/** Charts and tables under a heading; nothing where none of them has anything. */
export function Section({ title, charts, tables = [], small = false, children }: SectionProps) {
  const [seen, filled] = [charts.filter(isDrawn), tables.filter(({ rows }) => rows.length > 0)];
  if (seen.length === 0 && filled.length === 0) return null;
  return (
    <section class="part" aria-label={title}>
      <h2>{title}</h2>
      {children}
      <div class={small ? "charts small" : "charts"}>
        {seen.map((chart) => <ChartFrame key={chart.id} chart={chart} height={small ? 150 : 230} />)}
      </div>
      <div class="tables">{filled.map((table) => <Grid key={table.id} table={table} />)}</div>
    </section>
  );
}

const isDrawn = ({ lines, cells }: Chart) => lines.length > 0 || (cells ?? []).length > 0;
