"""Words for what fails of counting, physics and other reasoning."""

from __future__ import annotations

from collections.abc import Mapping

from echo_hf.engines.rules.words import phrases

FAULTS: Mapping[str, frozenset[str]] = {
    "counting": phrases(
        en="""wrong number of, wrong amount, cannot count, not count, miscounted, miscounts,
        wrong count, one too many, one short, one too few, too few, counting error""",
        es="no sabe contar, número equivocado, cantidad equivocada, uno de más, uno de menos",
        fr="ne sait pas compter, mauvais nombre, pas bon nombre, un de trop",
        de="kann nicht zählen, falsche anzahl, eins zu viel, einer zu viel, verzählt",
        pt="não sabe contar, número errado, quantidade errada, um a mais, um a menos",
        it="non sa contare, numero sbagliato, quantità sbagliata, uno in più, uno di troppo",
    ),
    "spatial reasoning": phrases(
        en="""growing through, growing out of, sticking out of, passes through, goes through, no
        solution, no exit, no way out, not solvable, unsolvable, dead end, dead ends, not full,
        half full, half empty, impossible geometry, through the wall, through the table,
        clipping through, makes no spatial""",
        es="no tiene solución, sin solución, sin salida",
        fr="pas de solution, sans issue, pas de sortie",
        de="nicht lösbar, keine lösung, sackgasse",
        pt="não tem solução, sem solução, sem saída",
        it="non ha soluzione, senza soluzione, senza uscita",
    ),
    "physics": phrases(
        en="""is floating, are floating, floating in air, floating in mid air, floating in
        midair, floats, hovering, hovers, defies physics, defies gravity, breaks physics,
        physically impossible""",
        es="flota, flotando, flotan",
        fr="flotte, flottent, flottant",
        de="schwebt, schweben",
        pt="flutua, flutuando",
        it="galleggia, fluttua",
    ),
    "arithmetic": phrases(
        en="not add up, wrong total, wrong sum, bad math, bad maths, wrong math, total is wrong",
        es="no suma, total equivocado, suma mal",
        fr="mauvais total, total faux, mal calculé",
        de="falsche summe, summe stimmt nicht, rechenfehler, falsch gerechnet",
        pt="total errado, soma errada, não bate a conta",
        it="totale sbagliato, somma sbagliata, conti non tornano",
    ),
    "factual errors": phrases(
        en="""factually wrong, factually incorrect, historically inaccurate, inaccurate, made up
        facts, wrong labels, mislabeled, mislabelled, anachronistic, wrong country, wrong flag,
        wrong city""",
        es="datos inventados, etiquetas equivocadas, históricamente",
        fr="inexact, inexacte, faits inventés, anachronique",
        de="sachlich falsch, historisch falsch, falsch beschriftet",
        pt="dados inventados, rótulos errados, impreciso",
        it="dati inventati, etichette sbagliate, storicamente",
    ),
}
TOPICS: Mapping[str, frozenset[str]] = {
    "counting": phrases(
        en="number of, amount of, counting, how many, quantity",
        es="cantidad, número de",
        fr="nombre de",
        de="anzahl, zählen",
        pt="quantidade, contar",
        it="quantità, contare, numero di",
    ),
    "spatial reasoning": phrases(
        en="""maze, mazes, labyrinth, puzzle, puzzles, crossword, chess, chessboard, geometry,
        brim, volume""",
        es="laberinto, ajedrez, crucigrama",
        fr="labyrinthe, échecs, mots croisés",
        de="kreuzworträtsel",
        pt="labirinto, xadrez",
        it="scacchi, cruciverba",
    ),
    "physics": phrases(
        en="physics, gravity, physically",
        es="física, gravedad",
        fr="gravité",
        de="physik, schwerkraft",
        pt="gravidade",
        it="fisica, gravità",
    ),
    "clock": phrases(
        en="clock, clock hands, wrong time, o clock, watch face, dial",
        es="reloj",
        fr="horloge",
        de="uhr, uhrzeit, zeiger",
        pt="relógio",
        it="orologio, lancette",
    ),
    "arithmetic": phrases(
        en="""math, maths, sum, sums, total, totals, arithmetic, calculation, prices, equation,
        equations""",
        es="suma, cuentas, precios, ecuación",
        fr="calcul, calculs, somme, prix",
        de="summe, rechnung, mathe, preise",
        pt="soma, contas, preços",
        it="somma, conti, prezzi",
    ),
    "factual errors": phrases(
        en="map, maps, flag, flags, geography, diagram, facts, history, historical, borders",
        es="mapa, bandera, geografía, diagrama",
        fr="carte, drapeau, géographie, schéma",
        de="karte, flagge, geografie, diagramm, landkarte",
        pt="bandeira",
        it="mappa, bandiera, diagramma",
    ),
}
HAN_FAULTS: Mapping[str, str] = {
    "counting": (
        "数量(?:不对|错|不對|錯)|個數不|个数不|数错|數錯|不会数数|不會數數"
        "|数が(?:違|合わ|おかし|足り)|数を数え|一つ(?:多い|足りない|少ない)"
    ),
}
HAN_TOPICS: Mapping[str, str] = {
    "counting": "数量|數量|个数|個數|の数|数が",
    "spatial reasoning": "迷宫|迷宮|迷路|空间|空間|棋盘|チェス|パズル",
    "physics": "物理|重力|浮いて",
    "clock": "时钟|時鐘|钟表|时间|時計",
    "factual errors": "地图|地圖|国旗|國旗|地図",
}
