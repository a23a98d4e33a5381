import "./style.css";
import { openPage } from "./standalone";
import { renderWidget } from "./widget";

openPage(document);

export default { render: renderWidget };
