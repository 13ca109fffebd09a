"""Tasks and feedback by plain rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum, auto
from itertools import combinations, pairwise
from types import ModuleType
from typing import Any, NamedTuple

from echo_hf.engines.rules import (
    failures_of_colour,
    failures_of_form,
    failures_of_obedience,
    failures_of_people,
    failures_of_reasoning,
    failures_of_style,
    failures_of_text,
)
from echo_hf.engines.rules import words as han
from echo_hf.engines.rules import words as verdict_words
from echo_hf.engines.rules.words import (
    ELSEWHERE,
    HAN_OR_KANA,
    Found,
    Lexicon,
    Names,
    Reading,
    covers,
    names_of,
    phrases,
    plain_words,
    words,
    words_of,
)

# Words that say more often what became of something; they are read with what they speak of.
READ_APART = frozenset({"missing", "lost", "drift", "drifts", "meh", "falta"})
COMPLAINT = (verdict_words.COMPLAINT - READ_APART) | phrases(
    en="""not at all, yeah no, drawing board, crime scene, cannot say i, shame, pity, too bad,
    not even close, junk, mush, blob, blobs, lacking, sucks, suck, nope, useless, rubbish, poor,
    poorly, botched, butchered, disaster, nonsense, struggling, struggle, issue, issues,
    problem, problems, bug, buggy, bugs, annoying, annoyed, frustrating, frustrated, sadly,
    mistake, mistakes, error, errors, incorrect, incorrectly, unnatural, off model, looks off,
    look off, is off, are off, feels off, bit off, slightly off, way off, was off, yikes, oof,
    ugh, eww, ew, nah, regression, downgrade, nerfed, worthless, horrifying, nightmare fuel,
    waste of time, waste of money, not great, not good, no good, not impressed, not convinced,
    not quite right, not worth, never works, never gets it, cannot do, could not do, gave up,
    gives up, giving up, wasted, fell apart, falls apart, falling apart, nothing like, far from,
    nowhere near, no luck, crap, shit, shitty, pathetic, trash, cringe, off putting, dislike,
    disliked, hot mess, cannot tell what, cannot tell who, cannot tell which, screwed up, screws
    up, messes up, mess up, fucked, fucks up, worse than, prefer old, prefer the original,
    original was better, wrong again, unacceptable, insulting, let down, fail at, did not work,
    does not work, unfinished, terribly, badly, weirdly shaped, awkward, nightmare, sloppy,
    amateurish, disconnected, inferior, faulty, defect, defects, flaw, flaws, flawed, complaint,
    complaints, gripe, downside, drawback, drawbacks, limitation, limitations, weakness, fails
    to, failed to, looks awful, makes no sense, make no sense, no sense, got worse, incapable,
    unable, impossible to get, nothing for me""",
    es="""errores, problema, problemas, fatal, horribles, pésimo, pésima, raro, rara, raros,
    raras, está mal, están mal, sale mal, salió mal, quedó mal, se ve mal, mal hecho, lástima,
    qué pena, pena, decepción, deforme, deformes, malísimo, malísima, feos, feas, basura,
    desastre, fallos, fallan, incorrecto, incorrecta, equivocado, equivocada, no vale, no sirve,
    no hay manera, no hay forma, peores, ni parecido, nada que ver, chapuza, fracaso, no me
    gusta, no me convence, inútil""",
    fr="""erreur, erreurs, problème, problèmes, mal fait, mal rendu, mal dessiné, mal dessinée,
    c est mal, nul, nulle, nuls, bizarre, bizarres, étrange, étranges, dommage, hélas,
    malheureusement, affreuse, décevante, déçu, déçue, catastrophe, ratés, ratées, moches, bof,
    rien à voir, n importe quoi, impossible, n aime pas, pas terrible, pas top, pas convaincu,
    pas ouf, échec, pire que""",
    de="""fehler, probleme, komisch, komische, komischen, seltsam, seltsame, schade,
    schrecklich, furchtbar, grauenhaft, grausig, unheimlich, nutzlos, müll, mies, miese,
    schlechte, schlechter, hässliche, falsche, falscher, falsches, falschen, katastrophe,
    enttäuscht, reinfall, schlimmer, unbrauchbar, misslungene, nervt, gefällt mir nicht,
    merkwürdig, daneben, peinlich, unmöglich, geht nicht, klappt nicht""",
    pt="""erro, erros, péssimo, péssima, horrível, estranho, estranha, estranhos, que pena,
    infelizmente, feios, feias, lixo, falhas, errada, errados, erradas, piores, decepção, não
    gostei, nada a ver, fracasso, bugado, bugada, ficou mal, mal feito""",
    it="""errore, errori, problemi, pessimo, pessima, strano, strana, strani, strane, peccato,
    purtroppo, brutti, brutte, sbagliata, sbagliati, sbagliate, disastro, schifo, delusione,
    deluso, deludenti, fallimento, peggiore, inutile, non mi piace, non c entra, niente a che
    vedere, inguardabile""",
)
# Decide where no praise stands beside them.
WEAK_COMPLAINT = phrases(
    en="""hmm, hm, meh, why is, why are, why does, why did, why has, fix, what happened to, what
    is going on, what is up with, could be better, should be better, could have been better, was
    better, used to be better, expected better, expected more, nice try, good try, do better,
    not there yet, not yet, wish, if only, needs work, needs improvement, room for improvement,
    keeps changing, kept changing, keeps making, kept making, keeps turning, keeps giving, kept
    giving, keeps putting, keeps drawing, cursed, careful, strange, odd, oddly, instead of, more
    like, look closely, look closer, zoom in, overrated, overhyped, no longer, for some reason,
    prompt says, prompt said, prompt asked, requested, thousand times, hundred times, million
    times, i count, no matter what, no matter how, no matter which, times in a row, twice in a
    row, three times, should be, should have been, supposed to be, supposed to, opposite, now
    there are, now there is, there are now, out of four, out of five, out of ten, giving me,
    questionable, concerning, limited, whatever i""",
    es="""por qué, ojalá, veces seguidas, da miedo, debería ser, da un poco de miedo, en vez de,
    en lugar de, ni de lejos, podría ser mejor, podría mejorar, no del todo, más bien, da igual
    lo que, por más que""",
    fr="""pourquoi, fois sur, d affilée, devrait être, au lieu de, à la place de, peut mieux
    faire, pas tout à fait, peu importe""",
    de="""warum, wieso, sollte, mal hintereinander, weshalb, statt, anstatt, stattdessen, könnte
    besser sein, eher wie, egal was, egal wie""",
    pt="""por que, vezes seguidas, deveria ser, ao invés de, em vez de, no lugar de, quem dera,
    poderia ser melhor""",
    it="perché, di fila, dovrebbe essere, invece di, al posto di, magari, potrebbe essere meglio",
)
# How often something happens: it is worth saying of what should not.
REPEATED = phrases(
    en="""every time, every single time, each time, always, still, keeps, kept getting,
    everytime, again""",
    es="siempre, cada vez, sigue, otra vez, de nuevo",
    fr="toujours, à chaque fois, chaque fois, de nouveau",
    de="immer, jedes mal, jedesmal, ständig, wieder, schon wieder",
    pt="sempre, toda vez, todas as vezes, continua, de novo, outra vez",
    it="ogni volta, tutte le volte, di nuovo",
)
# Beside praise they make it half of one; alone they complain.
HEDGES = phrases(
    en="bit, slightly, tad, little bit, somewhat, a little too",
    es="poco, algo raro, algo rara, ligeramente",
    fr="peu, légèrement",
    de="etwas, bisschen, leicht",
    pt="um pouco, meio, levemente",
    it="po, leggermente",
)
# Beside praise they make it half of one; beside a complaint they say nothing.
SOFTENING = phrases(
    en="""almost, nearly, close, not perfect, half right, partly, partially, sometimes, good
    enough, good start, promising, mixed""",
    es="casi, más o menos",
    fr="presque, parfois, à moitié, moyen",
    de="fast perfekt, fast richtig, fast gut, beinahe, manchmal, halbwegs, teilweise",
    pt="quase, às vezes, mais ou menos",
    it="quasi, così così",
)
# What they speak of is all that failed.
TEMPERING = phrases(
    en="""mixed bag, mixed results, apart from, other than, aside from, besides that, only
    issue, only problem, only thing, only complaint, only gripe, only nitpick, only downside,
    nitpick, minus, would be _ if, would have been, d be _ if, if you ignore, if i had to
    nitpick""",
    es="único problema, único fallo, única pega, única cosa, quitando",
    fr="à part, seul bémol, seul hic, bémol, seul problème",
    de="bis auf, einziges problem, einzige problem, abgesehen von",
    pt="tirando, única coisa, só que",
    it="unico problema, unica cosa, unico difetto",
)
UNEVEN = phrases(
    en="hit and miss, hit or miss, mixed bag, mixed results",
    fr="inégal",
    de="durchwachsen",
)
NEEDED = "took|took me|took it|needed|takes|needs|after|after about|took about|took me about"
TRIES = "tries|attempts|goes|shots|rounds|generations|rerolls|retries|regenerations"
SEVERAL_TRIES = frozenset(
    f"{needed} _ {tries}" for needed in NEEDED.split("|") for tries in TRIES.split("|")
) | phrases(
    en="""took few tries, took few attempts, took several tries, took while, took me while, took
    _ times, couple of tries, bunch of tries, lots of tries, few tries, several tries, many
    tries, several attempts, many attempts, few attempts, second try, second attempt, third try,
    third attempt, fourth try, fourth attempt, fifth try, fifth attempt, sixth try, 2nd try, 3rd
    try, 4th try, 5th try, second time, third time, fourth time, fifth time, one in five, one in
    three, one in four, had to retry, had to regenerate, kept retrying, rerolled, rerolling,
    rerolls""",
    es="""tras _ intentos, después de _ intentos, al segundo intento, al tercer intento, varios
    intentos, muchos intentos""",
    fr="""après _ essais, plusieurs essais, plusieurs tentatives, deuxième essai, troisième
    essai, au bout de _ essais, deuxième coup""",
    de="""nach _ versuchen, mehrere versuche, mehreren versuchen, zweiten versuch, dritten
    versuch, beim zweiten, beim dritten, viele versuche, brauchte _ versuche""",
    pt="""depois de _ tentativas, várias tentativas, segunda tentativa, terceira tentativa,
    muitas tentativas, após _ tentativas""",
    it="""dopo _ tentativi, vari tentativi, diversi tentativi, secondo tentativo, terzo
    tentativo, molti tentativi, al secondo colpo""",
)


THEMES: tuple[ModuleType, ...] = (
    failures_of_people,
    failures_of_colour,
    failures_of_text,
    failures_of_form,
    failures_of_style,
    failures_of_obedience,
    failures_of_reasoning,
)
FAULTS = {failure: said for theme in THEMES for failure, said in theme.FAULTS.items()}
TOPICS = {topic: words for theme in THEMES for topic, words in theme.TOPICS.items()}
HAN_FAULTS = {failure: said for theme in THEMES for failure, said in theme.HAN_FAULTS.items()}
HAN_TOPICS = {topic: words for theme in THEMES for topic, words in theme.HAN_TOPICS.items()}
SUBJECTS = failures_of_people.SUBJECTS

IDENTITY = "identity shift"
HANDS = "hands"
TEXT = "text rendering"
MISSPELT = "misspelt text"
COLOUR = "colour"
COUNTING = "counting"
STYLE = "style mismatch"
IGNORED = "ignored instruction"
MISSING = "missing object"
INCONSISTENCY = "inconsistency"
FAILURES_SEVERAL_TRIES = "several tries"
# Where a complaint names one of these and something more particular, the latter is the failure.
GENERAL = frozenset(
    {
        IGNORED,
        INCONSISTENCY,
        MISSING,
        "consistency",
        "extra object",
        "layout",
        "prompt adherence",
    }
)
# What should stay as it is: to say that it changed is to complain.
FRAGILE = frozenset(
    {
        IDENTITY,
        HANDS,
        TEXT,
        COLOUR,
        STYLE,
        "anatomy",
        "background",
        "clothing",
        "expression",
        "hair",
        "layout",
        "lighting",
        "logo",
        "perspective",
        "proportions",
        "skin tone",
    }
)
WHEN_CHANGED = {TEXT: "altered text", COLOUR: "colour drift"}
# Who mentions one of these without a word of praise has mostly found it wrong.
CRITICAL = frozenset(
    {
        IDENTITY,
        HANDS,
        TEXT,
        "anatomy",
        "aspect ratio",
        "clock",
        "missing accent",
        "reflections",
        "transparency",
    }
)


GAP = r"(?:(?!(?:is|are|was|were|should|has)\b)[\w'-]{1,16}\s){0,3}"
PICTURE = (
    r"(?:photos?|photographs?|pics?|pictures?|images?|selfies?|portraits?|screenshots?"
    r"|snapshots?|foto(?:s|graf[ií]as?)?|im[aá]gen(?:es)?|retratos?|photographies?|bilde?r?"
    r"|imagem|imagens|immagin[ei]|ritratt[oi])"
)
SUBJECT = (
    r"(?:person|people|man|woman|girl|boy|kid|child|baby|couple|dog|cat|pet|character|face"
    r"|subject|object|product|logo|room|house|car|outfit|dress|shirt|guy|animal|mascot|building"
    r"|kitchen|bottle|toy|figure|persona|personaje|perro|gato|personne|personnage|chien|chat"
    r"|mann|frau|hund|katze|figur|pessoa|personagem|cachorro|personaggio|cane|gatto|couch|sofa"
    r"|plant)"
)
DRAWING = (
    r"(?:sketch(?:es)?|drawings?|doodles?|line[\s-]?art|line drawings?|linework|scribbles?"
    r"|wireframes?|outlines?|blueprints?|floor ?plans?|rough|draft|boceto|dibujo|garabato"
    r"|esbozo|croquis|dessin|esquisse|gribouillis|skizze|zeichnung|kritzelei|entwurf|esboço"
    r"|desenho|rascunho|rabisco|schizzo|disegno|bozza|scarabocchio)"
)
THIS = (
    r"(?:this|these|my|our|(?:the |an? )?(?:attached(?! to)|uploaded|provided|enclosed)"
    r"|the (?:given|original|input|reference)|esta|este|estas|estos|mi|mis|cette|ce|ces|ma|mon"
    r"|mes|dieses?|diesem|diese[nr]?|meine?[nmrs]?|essa|esse|minha|meu|questa|questo|queste|mia"
    r"|mio)"
)
HAN_GIVEN = (
    r"这[张幅]|這[張幅]|该(?:照片|图|人物)|照片(?:里|中|上|裡)(?:的|面)|图(?:片|像)?(?:里|中"
    r"|上)的|圖(?:片|像)?(?:裡|中|上)的|上传|上傳|附件|附图|附圖|参考图|參考圖|原图|原圖"
    r"|我的(?:照片|自拍|头像|猫|狗)|[把将將]我|この(?:写真|画像|絵|人物|キャラ|線画|イラスト|猫"
    r"|犬|子|部屋|ロゴ)|添付|元の(?:画像|写真)|元画像|アップロード|写真の(?:人|中)|(?:私|自分"
    r"|僕|俺)(?:の(?:写真|顔|猫|犬|自撮り))?を|参考画像"
)
GIVEN = re.compile(
    rf"\b{THIS}\s{GAP}(?:{PICTURE}|{SUBJECT}|{DRAWING})\b"
    r"(?!\s(?:shows?|depicts?|features?|captures?|should|portrays?|presents?|is\s|of\s\[))"
    rf"|\b(?:the|every|all|la|el|las|los|le|les|der|die|das|den|o|a|os|as|il|lo|gli"
    rf"|i)\s{GAP}{SUBJECT}s?\s(?:{GAP}(?:in|from|on|of|de|en|sur|auf|im|na|da|della?|nella"
    rf"|sulla)\s(?:the|this|my|la|dem|der)?\s?(?:attached|uploaded|reference"
    rf"|provided)?\s?{PICTURE}|(?:in|from) the (?:scene|attachment))\b|\b(?:reference|attached"
    rf"|uploaded|original|input|source)\s{PICTURE}|\bthe attachment\b|\b{PICTURE}\s(?:attached"
    rf"|provided|uploaded|i (?:uploaded|attached|sent|gave)|adjunta|de referencia"
    r"|ci-jointe|jointe|angehängt|hochgeladen|anexada|em anexo|allegata|caricata)\b"
    rf"|\bupload {PICTURE}|\b(?:turn|make|draw|transform|convert|reimagine) (?:me|us|myself|him"
    rf"|her|them)\b"
    r"|\bmyself\b|\bconvi[eé]rteme|\bponme\b|\btransforme-moi|\bverwandle mich"
    rf"|\b(?:turn|transform|convert|redraw|restyle|retexture|edit)\sthe\s{PICTURE}\b"
    rf"|\b(?:based on|using|from) (?:the|my|this|an?) (?:attached |uploaded )?{PICTURE}\b"
    rf"|{HAN_GIVEN}"
)
ONE_GIVEN = re.compile(
    rf"\b(?:this|that|my|the|attached|esta|mi|la|cette|ma|dieses|mein|diesem|essa|minha|questa"
    rf"|mia)\s{GAP}(?:photo|pic|picture|image|selfie|portrait|foto|imagen|photographie|bild"
    rf"|imagem|immagine|sketch|drawing|person|dog|cat|{DRAWING})\b|这张|這張|この(?:写真|画像"
    rf"|線画|絵)"
)
COMBINE = (
    r"\b(?:combin\w{1,4}|merg\w{1,3}|blend\w{0,3}|fus(?:e|ion\w{0,3})|composit\w{1,3}|collage"
    r"|together|fusiona\w{0,2}|junta\w{0,2}|mezcla\w{0,2}|fusionne\w{0,2}|assemble"
    r"|kombinier\w{1,3}|verbinde|zusammen\w{0,6}|junte|mescle|unisci|fondi|insieme)\b"
)
COUNTED = (
    rf"\b(?:both|these (?:two|three|four|2|3|4)|ambas?|ambos|estas dos|ces deux|les deux"
    rf"|beide[nr]?|diese (?:zwei|beiden)|estas duas|essas duas|entrambe"
    rf"|queste due)\s?{GAP}{PICTURE}\b|\b(?:two|three|2|3)\s(?:attached |uploaded "
    rf"|given )?{PICTURE}\b|\b(?:first|second|third|other|1st|2nd|left|right|segunda|primera"
    rf"|deuxième|première|zweite[ns]?|erste[ns]?|primeira|seconda|prima)\s(?:{PICTURE}|one\b)"
    rf"|\b{PICTURE}\s?#?(?:[1-4ab]|one|two)\b"
    r"|[两兩二2]张(?:图|照片)|[两兩]張|图[12一二]|圖[12一二]|第[一二三]张|第[一二三]張|[2二]枚"
    r"|[12一二]枚目"
)
SEVERAL = re.compile(f"{COMBINE}|{COUNTED}|合成|融合|结合|結合|組み合わせ|拼在一起")
SEVERAL_GIVEN = re.compile(
    rf"{COMBINE}[^.!?\n]{{0,60}}(?:{COUNTED})|(?:{COUNTED})[^.!?\n]{{0,80}}{COMBINE}"
    r"|(?:two|both|these|three|两|兩|2枚)[^.!?\n]{0,30}into (?:one|a single)|(?:两"
    r"|兩)张[^。\n]{0,20}(?:合|融)"
    rf"|\bfrom the (?:first|1st) {PICTURE}[^.!?\n]{{0,80}}(?:second|2nd|other)"
)
STYLE_OF_GIVEN = re.compile(
    rf"\bstyle (?:of|from|in) the (?:second|other|reference|2nd|last|attached) {PICTURE}|(?:use"
    rf"|apply) the style of (?:the )?(?:second|other|reference|2nd|{PICTURE})"
    r"|第二张(?:图)?的风格|2枚目の(?:スタイル|画風)"
)


RESTORE = re.compile(
    r"\b(?:restor(?:e|ation|ing)|repair|unblur|deblur|denoise|upscal(?:e|ing)|coloris?e"
    r"|colorize|sharpen|remaster|enhance (?:the |this |my )?(?:quality|resolution|photo|image"
    r"|picture|old)|(?:remov\w{1,3}|fix|clean|erase|repair)\s[^.\n]{0,40}(?:scratch|crease"
    r"|stain|tear|dust|noise)\w{0,2}|improve the (?:quality|resolution)|fix (?:this|the"
    r"|my) (?:old|damaged|blurry|torn|faded)|old (?:damaged |family |torn |faded "
    r"|black and white )?photo(?:graph)?|restaur\w{1,3}|repara\w{0,2}|colorea esta foto"
    r"|coloriza\w{0,2}|quita los arañazos|foto antigua|mejora la calidad|répare\w{0,2}"
    r"|colorise\w{0,2}|enlève les rayures|vieille photo|améliore la qualité|repariere|koloriere"
    r"|kratzer entfernen|entferne die kratzer|altes foto|restaurier\w{1,3}|qualität verbessern"
    r"|tire os riscos|remova os riscos|foto antiga|melhor[ea] a qualidade|ripara|togli i graffi"
    r"|vecchia foto|migliora la qualità)\b|修复|修復|修补|老照片|舊照片|旧照片|(?:去除|去掉"
    r"|消除|清除)[^。\n]{0,8}(?:划痕|刮痕|折痕|污渍|噪点)|去噪|变清晰|變清晰|高清化|古い写真"
    r"|復元|高画質|カラー化|鮮明に"
)
SKETCH = re.compile(
    rf"\b(?:this|these|my|our|his|her|(?:the|an?) (?:attached|uploaded|provided|given|rough"
    rf"|enclosed)|attached|uploaded|esta|este|mi|ce|cette|mon|ma|diese[rsn]?|meine[rsn]?|este"
    rf"|esse|essa|meu|minha|questo|questa|mio|mia)\s{GAP}{DRAWING}\b|\b(?:sketch|doodle"
    rf"|scribble|line[\s-]?art|line drawing|wireframe|drawing)\s(?:to|into|2)\s(?:a "
    rf"|an )?{GAP}(?:image|photo|real|render|picture|painting|finished)|\b(?:turn|convert"
    rf"|transform|finish|colou?r|bring|render|complete)\s(?:in\s)?(?:the|a|my"
    rf"|this)\s{GAP}{DRAWING}\b"
    r"|\bkid'?s? drawing|\b(?:son|daughter|child|kid)['’]s drawing|(?:这|這|我的?|将|將"
    r"|把)[张張幅个個]?[^。\n]{0,6}(?:线稿|線稿|草图|草圖|草稿|涂鸦|塗鴉|手绘|手繪|简笔画"
    r"|簡筆畫|线框)|线稿上色|線稿上色|(?:この|私の|自分の|僕の|手書きの)(?:線画|らくがき|落書き"
    r"|ラフ|下書き|スケッチ|手描き)|線画を|線画に|ラフを|下書きを|落書きを"
)
MEDIA = (
    r"ghibli|pixar|disney|dreamworks|simpsons?|south park|muppets?|minecraft|lego|legos|funko"
    r"|chibi|anime|manga|comics?|comic book|cartoons?|caricatures?|illustrations?|paintings?"
    r"|watercolou?rs?|oil paint\w{0,4}|gouache|acrylic|pastels?|charcoal|pencil|sketch(?:es)?"
    r"|line art|ink drawing|pixel art|8-?bit|16-?bit|voxels?|low[\s-]?poly|3d (?:render\w{0,3}"
    r"|character|icon|model|cartoon|style)|clay|claymation|plasticine|plush\w{0,3}|knitted"
    r"|crochet\w{0,2}|felt|embroider\w{1,3}|cross[\s-]?stitch|stained glass|mosaic|origami"
    r"|paper ?cut|cut paper|papercraft|linocut|woodcut|engraving|etching|ukiyo-?e|statues?"
    r"|sculptures?|marble|figurines?|action figures?|bobbleheads?|nesting dolls?|matryoshka"
    r"|stickers?|emoji|keychains?|enamel pin|badge|pop art|art nouveau|art deco|cubis\w{1,2}"
    r"|impressionis\w{1,2}|van gogh|picasso|monet|vector|flat|coloring page|colouring page"
    r"|silhouette|retro futur\w{1,4}|steampunk|cyberpunk|vaporwave|tapestry|polaroid|doodle"
    r"|doll|dolls|toy|barbie|avatar|stylized|stylised|postage stamp|snow globe|silk|inflatable"
    r"|acuarela|óleo|caricatura|dibujo animado|pintura|estilo|plastilina|aquarelle|dessin animé"
    r"|bande dessinée|peinture|aquarell|ölgemälde|zeichentrick|karikatur|knete|comicstil"
    r"|gemälde|aquarela|desenho animado|massinha|acquerello|dipinto|fumetto|cartone animato"
    r"|style|aesthetic|stil|stile"
)
MEDIUM = re.compile(
    rf"\b(?:{MEDIA})\b|風|风格|風格|水彩|油画|油畫|动漫|動漫|漫画|漫畫|卡通|吉卜力|皮克斯|乐高"
    rf"|樂高|手办|手辦|粘土|贴纸|貼紙|q版|像素"
    "|插画|插畫|素描|剪纸|刺绣|毛绒|アニメ|ジブリ|ピクサー|イラスト|フィギュア|ドット絵|粘土"
    "|ぬいぐるみ|スタンプ|タッチ|画風"
)
RESTYLE = re.compile(
    r"\b(?:restyle|retexture|cartoonify|cartoonize|ghiblify|ghibliphy|animefy|stylize|stylise"
    r"|style transfer|pixelate|legofy|redraw this|repaint this)\b|\b(?:in|into|to|as)\s(?:(?:a"
    r"|an|the)\s)?(?:[\w'-]{1,16}\s){0,4}style\b|\bin the style of\b|\bal estilo\b"
    r"|\ben estilo\b|\bdans le style\b|\bim stil\b|\bno estilo\b|\bnello stile\b|\bin stile\b"
    r"|风格|風格|風に|スタイルに"
)
# An order about a part of the picture, at its beginning.
PART = re.compile(
    r"\W{0,8}(?:(?:please|pls|now|can you|could you|just)\s){0,3}(?:add|remove|replace|swap"
    r"|erase|delete|put|place|give|change (?:the|her|his|my|its|this)\s(?!style)|make (?:the"
    r"|her|his|my|its)\s(?!photo|image|picture)|fill|extend|expand|zoom|crop|rotate|agrega"
    r"|añade|quita|cambia|pon|reemplaza|ajoute|enlève|remplace|change|mets|füge|entferne"
    r"|ersetze|ändere|setze|adicione|remova|troque|mude|coloque|aggiungi|rimuovi|sostituisci"
    r"|cambia|metti)\b|\W{0,8}(?:请|請)?(?:添加|加上|去掉|去除|删除|移除|替换|換成|换成|更换)"
)
EDIT = re.compile(
    r"\bkeep (?:the|her|his|my|its|their|everything|all)\s[^.!?\n]{1,60}?\b(?:same|exactly"
    r"|unchanged|identical|as (?:is|it is|they are)|intact|consistent)\b|\bdo(?:n['’]t"
    r"| not) change (?:anything|the|her|his|my)\b|\b(?:remove|erase|replace"
    r"|change) the (?:background|person|people|text|watermark|sky|object|colou?r)|\b(?:mantén"
    r"|conserva|garde|gardez|behalte|mantenha|mantieni) (?:la|el|le|das|die|den|o|a|il)\b"
    r"|保持[^。\n]{0,10}不变|不要改变|换背景|換背景|変えないで|背景を変"
)


CONTRAST = re.compile("但|不过|不過|可是|然而|可惜|でも|けれど|けど|だけど|しかし|ただし|のに|就是")
PRAISE = re.compile(
    han.HAN_PRAISE.pattern
    + (
        "|真实|真實|逼真"
        "|(?:很|好|真|太|超|非常|特别|特別|蛮|挺)(?:美|帅|帥|酷|好|赞|讚|棒|漂亮|可爱|可愛|自然|真实|真實|逼真|清晰|清楚|惊艳|强|強|牛|像|细腻|高级|精致|精緻|有趣|有意思|喜欢|喜歡|温柔|治愈)"
        "|想买|想買|细腻|細膩|还原度|爱了|愛了|赞|讚|牛[啊!！b掰]|好看|好美|太美|绝美|絕美|高级感"
        "|高級感|到位|精准|精準|惊喜|驚喜|太像|很像|好像真|超像|一模一样|一模一樣|完美|神还原"
        "|神了|爱死|愛死|爱惨|收藏了|点赞|點讚|佩服|优秀|優秀|酷|帅|帥|给力|成功|可以啊|强啊|无敌"
        "|治愈|治癒|舒服|稳定|穩定|素晴らし|すてき|すばらし|感動|感激|完成度|再現|忠実|可愛い"
        "|カッコいい|かっこいい|天才|好み|そっくり|尊い|いいね|良い|よい|いいです|いい[!！ねな]"
        "|自然です|自然で[す、]|大好き|気に入|優秀|リアル(?:で|!|！|だ|す)|上手|成功|似てる"
        "|似ています|最高|バッチリ|ばっちり|助かり|お見事|見事|驚い|綺麗|かと思った"
        "|かと思いました|本物みたい|写真みたい|以为是真|以為是真|跟真的一样"
    )
)
WEAK_PRAISE = re.compile(
    "哈哈|谢谢|謝謝|保留|保持|不变|不變|可以|还行|還行|清楚|清晰|正确|正確|ありがと|参考"
    "|そのまま|残って|ちゃんと|正しく|笑|[wｗ草]{2,}"
)
HAN_WORDS_COMPLAINT = re.compile(
    han.HAN_COMPLAINT.pattern
    + (
        "|(?:很|好|太|真|超|非常|特别)(?:丑|醜|假|怪|糊|暗|黄|黃|乱|亂|差|烂|爛|糟|慢|僵硬|粗糙|生硬|违和)"
        "|奇怪|怪怪|诡异|詭異|恐怖|吓人|嚇人|别扭|彆扭|不自然|假的?[!！。]|很假|好假|太假|塌|崩了"
        "|崩坏|崩壞|毁了|毀了|差[远劲評评]|太差|很差|失望|遗憾|遺憾|可惜|問題|问题|bug|翻车|翻車"
        "|一塌糊涂|乱七八糟|亂七八糟|乱写|亂寫|乱画|亂畫|烂|爛|糟|醜|丑|无语|無語|离谱地|智障"
        "|白费|不能用|没法用|救命|変[なにで。！!]|おかし|ずれ|ズレ|ミス|間違|不気味|気持ち悪|キモ"
        "|ガッカリ|がっかり|酷い|むり|無理|惜しい|汚い|苦手|違和感|失敗|バグ|破綻|台無し|がたが"
        "|イマイチ|いまいち|弱い|足りな|微妙"
    )
)
# How often something happens, or why: it is worth saying of what should not.
HAN_WORDS_WEAK_COMPLAINT = re.compile(
    "每次|总是|總是|老是|毎回|いつも|为什么|為什麼|怎么(?:又|还|回事|老|总|会)"
    "|怎麼(?:又|還|回事|老|會)|なぜ|なんで|どうして"
)
HAN_WORDS_TEMPERING = re.compile(
    "差一点|差一點|差点|差點|基本上|大部分|有时|有時|偶尔|偶爾|除了|もう少し|もうちょっと"
    "|たまに|以外は|時々|惜しい|ほぼ"
)
HAN_WORDS_SEVERAL_TRIES = re.compile(
    r"试了(?:[几好多两三四五六七八九十\d]+)次|抽(?:了)?[几好多两三四五\d]*[次张]?卡"
    r"|第[二三四五]次(?:才|就)|[二三四五六七八九十\d]+回(?:目|やって|試)|何度も|何回も|ガチャ"
)
DENIED_PRAISE = re.compile(
    "(?:不(?:太|够|夠|怎么|是很|是|算|会|會)?|没(?:有)?(?:那么)?"
    "|沒(?:有)?|无法|無法)(?:好看|像|行|对|對|满意|滿意|准|準|清楚|清晰|自然|一样|一樣|一致|稳定|穩定|正确|正確|真实|真實|完美|保留|保持|按|听|聽|懂|理解|识别|識別|显示|顯示|生成|做到|给|給|出来|出來|能)"
    "|没法|沒法|不是(?:我|原|同|蓝|藍|红|紅|这|這|很|那)|也不是|做不到|画不[好对出]"
    "|畫不[好對出]|看不清|不给|不給|不让|不讓|不会画|不會畫"
    "|(?:似て|残って|なって|でき|出来|読め|描け|守って|聞いて|合って|反映され|書け|分かって|わかって|理解し|消え)(?:い)?(?:ない|ません|なかった|ず|てない)"
    "|(?:良く|よく|可愛く|上手く|うまく|きれいに|綺麗に|思い通りに|指示通りに)(?:は)?(?:ない|ならない|いかない|できない|なりません|出ない)"
    "|(?:きれい|綺麗|好き|リアル|同じ|本人|正確|完璧)(?:では|じゃ)(?:ない|なかった|ありません)"
    "|てくれない|てくれません|られない|られません"
)
DENIED_COMPLAINT = re.compile(
    "(?:没有?|沒有?|无|無|毫无|零|不)(?:任何|一个|一點|一点)?(?:写错|寫錯|拼错|拼錯|画错|错字|錯字|错别字|错误|錯誤|问题|問題|变形|變形|翻车|翻車|模糊|违和|違和|难看|難看|奇怪|偏黄|偏色|崩|糊|差|假|丑|裁)"
    "|不错|不錯|没毛病|违和感ない"
    "|(?:違和感|誤字|ミス|破綻|崩れ|ズレ|ずれ|問題|狂い|歪み)(?:も|が|は)?(?:全く|一切|ほとんど)?(?:ない|なし|無し|無く|なく|ありません|せず|ていない|てない)"
    "|悪くない|悪くありません|失敗しない|文句なし|申し分ない|変わらない|変わって(?:い)?ない"
)
QUESTION = re.compile("[吗嗎么呢]$|ですか$|ますか$|かな$|できる$")


NEGATORS = words(
    en="""not no never without cannot neither nor zero none nothing nobody less fewer avoids
    avoided hardly barely""",
    es="nunca jamás sin tampoco ni ningún ninguna nada menos",
    fr="pas jamais sans aucun aucune rien ne n moins",
    de="nicht kein keine keinen keinem keiner nie niemals ohne nichts weniger",
    pt="não nao sem nem nenhum nenhuma",
    it="non senza mai nessun nessuna né",
)
# They may follow what they deny.
TRAILING_NEGATORS = words(
    fr="pas plus jamais rien",
    de="nicht kein keine nie",
)
SPEAKERS = words(
    en="i you we they people im u",
    es="yo tú nosotros",
    fr="je j tu vous nous",
    de="ich du wir man",
    pt="eu você nós",
    it="io tu noi",
)
# Said of a result only when denied: "did not keep", "won't follow".
WANTED = phrases(
    en="""keep, preserve, match, same, let, allow, able, capture, captures, draw, draws, handle,
    manage, render, renders, spell, spells, fit, show, include, included, help, look like, looks
    like, looking like, resemble, resembles, similar, enough, there, count, produce, output,
    shows, do, does, asked for, say, says, stay, stays, apply, applied, add, added, fill,
    create, creates, accept, maintain, retain, copy, make sense, remove, removed, change the
    background, support, care, convey, come out, make, see""",
    es="""hace, sale, salen, salió, deja, dejó, entiende, entendió, siguió, puede, sabe, logra,
    logré, parece, parecen, pone, puso, escribe, dibuja, se parece, igual, lo que pedí,
    respetar, genera, generó, quiere, mantener, hizo, cambia el fondo, cambió el fondo,
    coincide, lee""",
    fr="""ressemble, ressemblent, suit, suivi, comprend, compris, sait, arrivé, réussit, veut,
    peut, écrit, même, correspond, fait, dessine, lit""",
    de="""aussieht, sieht aus, ähnlich, hält, hält sich, befolgt, versteht, verstanden, kann,
    schafft, geschafft, macht, gemacht, will, lässt, lesbar, wie gewünscht, bekommt, hin,
    erkennt, gleich, gleiche, derselbe, dieselbe, dasselbe, schreibt, zeichnet, zeigt""",
    pt="""faz, fez, segue, seguiu, entende, entendeu, consegue, conseguiu, deixa, deixou,
    parecem, escreve, gera, gerou, quer, saiu, respeita, desenha, lê""",
    it="""fa, seguito, capisce, capito, riesce, sa, lascia, sembra, somiglia, assomiglia,
    scrive, uguale, stesso, stessa, generato, vuole, può, disegna, leggibile, legge""",
)
# As those; who does not do them ignores what was asked.
OBEYED = phrases(
    en="""follow, follows, followed, following, listen, listens, understand, understands,
    understood, obey, obeys, respect, respects, stick to""",
)
# As those, and also when the writer is the one who could not.
WANTED_BY_ANYONE = phrases(
    en="""get, gets, got, getting, generate, make it, read, recognise, recognize, recognisable,
    recognizable, reproduce, replicate, edit, trust, want, wanted, ask, asked, use, convinced,
    fan""",
    es="consigo, logro, pude, puedo, pedí, consigue",
    fr="arrive, demandé",
    de="bekomme, kriege, schaffe, hinbekommen, wollte",
    pt="consegui, pedi",
    it="riesco, chiesto, riuscito",
)
# Neither good nor bad before it is known of what: "the face changed", "the colours are different".
CHANGED = phrases(
    en="""melt, melts, melted, melting, fused, merged, jumped, twisted, bent, bends, swapped,
    moved, moves, moving, changed, changes, change, changing, different, differently, drift,
    drifts, drifted, drifting, another, else, anymore, any more, altered, alters, alter, swaps,
    morphed, morphs, morphing, younger, older, fatter, thinner, shifted, shifts, shift,
    replaced, replaces, rewritten, rewrites, rewrote, rewrite, invented, invents, invent,
    warped, warps, smaller, bigger, rounder, wider, narrower, taller, shorter, became, becomes,
    turned into, turns into, bleeds, faded, fades, randomised, randomized, modified, modifies""",
    es="""cambia, cambió, cambian, cambiaron, cambiado, cambiada, cambiando, distinto, distinta,
    distintos, distintas, diferente, diferentes, otro, otra, otros, otras, inventó, alteró""",
    fr="""changé, changée, changés, changées, changent, différent, différente, différents,
    autre, autres, dérive, invente, inventé, modifié, modifiée""",
    de="""verändert, veränderte, veränderten, ändert, geändert, anders, andere, anderes,
    anderer, anderen, fremd, abweicht, erfindet, verschiebt""",
    pt="""mudou, muda, mudaram, mudando, mudado, mudada, outro, outra, outros, outras, alterou,
    inventou""",
    it="""cambiato, cambiata, cambiati, cambiate, cambiano, diverso, diversa, diversi, diverse,
    altro, altra, alterato, inventato""",
)
# Bad, unless it was asked for.
GONE = phrases(
    en="""no _ anywhere, no _ in sight, no sign of, gone, missing, lost, loses, losing, lose,
    vanished, vanishes, vanish, disappeared, disappears, disappear, disappearing, dropped,
    drops, forgot, forgets, forgotten, left out, leaves out, omitted, omits, removed my,
    deleted, deletes, erased, erases, skipped, skips, swallowed, where did my, where did it, not
    there""",
    es="""falta, faltan, faltaba, faltó, desaparece, desapareció, desaparecieron, desaparecido,
    perdió, perdido, olvidó, olvida, quitó, borró, se comió, se come, comió""",
    fr="""manque, manquent, manquait, disparaît, disparait, disparu, disparue, disparus,
    disparaissent, perdu, perdue, oublié, oublie, effacé, supprimé""",
    de="""fehlt, fehlen, fehlte, fehlten, verschwunden, verschwindet, verschwinden, verloren,
    vergessen, vergisst, weggelassen, gelöscht""",
    pt="""faltam, faltou, faltando, sumiu, sumiram, desapareceu, desapareceram, perdeu,
    esqueceu, apagou, removeu""",
    it="""manca, mancano, mancava, sparito, sparita, spariti, sparisce, scomparso, scomparsa,
    perso, persa, dimenticato, cancellato, tolto""",
)
REMOVAL = words(
    en="remove removed removing erase delete clean without rid clear declutter cut",
    es="quita quitar elimina eliminar borra borrar sin",
    fr="enlève enlever supprime supprimer efface effacer retire sans",
    de="entferne entfernen lösche löschen weg ohne",
    pt="remova remover apague apagar tire tirar sem",
    it="rimuovi rimuovere elimina eliminare cancella togli senza",
)
EXCESS = words(
    en="too overly",
    es="demasiado demasiada demasiados demasiadas",
    fr="trop",
    de="zu",
    it="troppo troppa troppi troppe",
)
EXCESS_OF_SOME = frozenset({"too", "overly", "zu"})
# What a picture may be too much of; most other words after "too" are praise, or not of pictures.
EXCESSIVE = words(
    en="""dark bright smooth yellow orange red green blue saturated warm cold clean perfect
    glossy shiny generic big small large long short thin thick high low wide narrow young old
    busy cluttered simple plain soft blurry plastic dense many much few far close similar
    different slow literal cartoonish cartoony symmetrical polished sharp pale light contrasty
    noisy crowded flat artificial fake little muscular skinny fat realistic""",
    de="""dunkel hell gelb glatt groß klein viel viele wenig wenige stark jung alt bunt grell
    warm kalt rot grün blau perfekt weich künstlich brav dick dünn lang kurz langsam""",
)
# Phrases whose words mean something else alone.
NEUTRAL = phrases(
    en="""would love, d love, love to see, love to try, love to know, would be great, would be
    nice, would be cool, would be fun, would be amazing, would be awesome, would be better, d be
    great, d be nice, d be cool, would like, d like, good morning, good night, good luck, good
    evening, good question, good point, good day, best regards, at best, best results, best
    result, best way, best prompt, great prompt, nice prompt, cool prompt, good prompt, awesome
    prompt, love this prompt, love prompt, favourite prompt, favorite prompt, great idea, cool
    idea, fun idea, love idea, love this idea, great thread, thanks for sharing, thank you for
    sharing, thx for sharing, great share, clever prompt, clever idea, brilliant idea, not me
    trying, not me crying, not me spending, not me making, not me using, try your best, nice to
    see you, nice to meet, close up, close ups, at least, as well, as good as, no idea, no
    doubt, no way, no joke, no cap, no problem, no worries, not only, not to mention, why not,
    not gonna lie, not going to lie, not sure how, not sure if, cannot wait, could not resist,
    could not agree, did not know, do not know, do not think, do not need, do not worry, do not
    sleep on, does not matter, does not hurt, never mind, never thought, nothing but, lost my
    mind, lost for words, at a loss, right hand side, right side, right corner, left hand side,
    how good is, how well does, how well do, want to, wanted to, cannot stop, do not stop, make
    sure, anyone else, anything else, something else, nothing else, everything else, everyone
    else, what else, or else, for best, change my mind, error free, problem solved, not a
    problem, pet peeve, same here, same prompt, same way, same thing here, wrong thread, not a
    photo, not photoshop, not photoshopped, not real photo, not a real, artificial intelligence,
    did you, try again, trying again, tried again, do it again, again later, use again, back
    again, here again, again soon, once again, hope, hopefully, turned out, turns out, right
    away, right here, right there, right now, real quick, real people, for real, real life, look
    at, free, bad boy, do not let, if not, or not, not sponsored, why would you, did not have
    to, not need to, do not have to, cannot believe it, better prompt, better prompts, better
    result if, better results if, better results with, was hoping, work in progress, my work,
    your work, at work, to work with, for work, hand drawn, hand painted, hand made, handmade,
    by hand, on the other hand, looking for mistakes, look for mistakes""",
    es="""me encantaría, estaría bien, sería genial, buenos días, buenas noches, no solo, no sé,
    por lo menos, ni idea, sin duda, no importa, no hace falta, sin problema, sin problemas,
    buena suerte, buena idea, mejor prompt, nada menos, no es una foto, mismo prompt""",
    fr="""j aimerais, ce serait bien, ce serait top, bonne journée, bonne idée, bonne chance,
    pas seulement, pas de souci, pas de problème, sans doute, je ne sais pas, au moins, pas
    grave, pas besoin, n importe quel, n importe quelle, même consigne, même prompt, quand même,
    moi même, à main""",
    de="""wäre schön, wäre toll, wäre super, wäre gut, guten morgen, gute nacht, gute idee,
    nicht nur, keine ahnung, kein problem, weiß nicht, ohne zweifel, macht nichts, würde gerne,
    gleiche prompt, gleicher prompt, gleichen prompt, auch nicht, von hand""",
    pt="""adoraria, seria bom, seria legal, seria ótimo, bom dia, boa noite, boa tarde, boa
    ideia, boa sorte, não só, não sei, sem dúvida, sem problema, pelo menos, não importa, tudo
    bem, mesmo prompt, à mão""",
    it="""mi piacerebbe, sarebbe bello, buon giorno, buona idea, buona fortuna, non solo, senza
    dubbio, nessun problema, almeno, non importa, stesso prompt, a mano libera, stampato a mano""",
)


JSON = re.compile(r"\W{0,20}[{\[]\s{0,40}\"")
JSON_TEXT = re.compile(
    r"\"(?:[a-z_ ]{0,20})(?:text|title|caption|headline|slogan|label|words?|inscription|tagline"
    r"|typography|lettering|copy)(?:[a-z_ ]{0,12})\"\s?:\s?(?:\[\s?)?(?:\{|\"(?!(?:none|no|null"
    r"|n/a|without)\b)[^\"]{1,400}\")"
)
NO_TEXT = re.compile(
    r"\b(?:no|without(?: any)?|free of|avoid|sin|sans|ohne|kein(?:e|en)?|sem|senza"
    r"|nessun)\s(?:[\w-]{1,12},?\s){0,3}(?:texts?|words?|letters?|lettering|typography"
    r"|captions?|labels?|logos?|watermarks?|texto|texte|testo|palabras|mots|letras|wörter"
    r"|schrift)\b|(?:不要|无|無|没有|沒有|不含)(?:任何)?(?:文字|字|水印)|文字(?:なし|は入れない"
    r"|不要)"
)
QUOTED = re.compile(r"[\"“„«「『‘]\s?([^\"“”„«»「」『』‘’\n]{1,120}?)\s?[\"”“»」』’]")
CUE = re.compile(
    r"\b(?:texts?|words?|titles?|titled|says?|saying|reads?|reading|labels?|labell?ed|signs?"
    r"|captions?|slogans?|headlines?|inscription|letters|lettering|written|logo|tagline|heading"
    r"|subtitle|named|called|name|quote|typography|font|poster|cover|print(?:ed)?|engraved"
    r"|spell(?:s|ed|ing)?|texto|palabras?|título|dice|letrero|texte|mots?|titre|inscription"
    r"|wort|worte|titel|aufschrift|steht|palavras?|escrito|testo|parol[ae]|titolo|scritta)\b"
    r"|文字|写着|寫著|标题|標題|字样|字樣|标语|と書|タイトル|ロゴ|看板"
)
WORDED = re.compile(
    r"\b(?:the (?:words?|text|title|letters?|phrase|name|slogan|headline|caption|inscription"
    r"|number)\s[\"“«'‘(\[{\w]|that (?:says|reads)\s|(?:which|sign|shirt|cake|banner|mug|label"
    r"|bubble) (?:says|reads|saying|reading)\b|(?:saying|reading|titled|labell?ed"
    r"|spelling(?: out)?|written)\s?[\"“«:‘']|with the text|(?:text|title|caption|headline):"
    r"|text (?:reads|saying)|typograph\w{1,3}|lettering|calligraphy|with (?:bold |large |big "
    r"|clear )?text\b|(?:el|con el) texto|la palabra|las palabras|que diga|que dice"
    r"|con el título|le texte|le mot|les mots|le titre|avec le texte|qui dit|der text|das wort"
    r"|die worte|mit dem text|dem titel|mit der aufschrift|schriftzug|steht|o texto|a palavra"
    r"|as palavras|com o texto|que diz|o título|il testo|la parola|con la scritta|il titolo"
    r"|che dice)|文字|写着|寫著|写有|标题|標題|标语|標語|字样|字樣|题词|书法|書法|と書|と入れ"
    r"|文言|タイトル|キャッチコピー|フォント"
)
DOCUMENT = re.compile(
    r"\b(?:menus?|receipts?|infographics?|business cards?|invitations?|newspapers?"
    r"|magazine covers?|book covers?|album covers?|movie posters?|film posters?|(?:event"
    r"|concert|travel|propaganda|promotional|exhibition|vintage|retro|wanted|motivational"
    r"|satirical|advertising|art) posters?|posters? (?:for|with|about|titled|advertising|of)"
    r"|certificates?|diplomas?|flyers?|brochures?|calendars?|speech bubbles?|billboards?"
    r"|chalkboards?|whiteboards?|handwritten|recipe cards?|periodic table|tweets?|passports?"
    r"|(?:concert|train|boarding|movie|parking) (?:tickets?|pass)|boarding pass|crossword"
    r"|(?:neon|road|street|shop|wooden|warning|traffic|store) signs?|signage|logo for"
    r"|logo called|logo with (?:the )?name|word ?mark|product labels?|packaging label"
    r"|price tags?|(?:tarot|trading|greeting|birthday) card|diagram|flow ?chart|timeline"
    r"|worksheet|resume|invoice|report card|meme|comic strip|four[\s-]panel|4[\s-]panel"
    r"|screenshot|user interface|dashboard|ui mockup|nutrition (?:facts|label)|license plate"
    r"|slide|cheat sheet|menú|recibo|factura|infografía|tarjeta de|invitación|periódico|portada"
    r"|cartel|letrero|folleto|affiche|reçu|infographie|carte de visite|carton d['’]invitation"
    r"|journal|couverture de|enseigne|panneau|plakat|speisekarte|quittung|kassenbon|infografik"
    r"|visitenkarte|einladung|zeitung|titelseite|buchcover|schild|cartaz|cardápio|infográfico"
    r"|cartão de|convite|jornal|capa de|letreiro|locandina|manifesto|menù|scontrino|infografica"
    r"|biglietto|invito|giornale|copertina|insegna|cartello)\b|海报(?!风)|海報(?!風)|菜单|菜單"
    r"|收据|收據|小票|信息图|資訊圖|名片|邀请函|邀請函|报纸|報紙|封面|招牌|标签|標籤|贺卡|賀卡"
    r"|日历|思维导图|ポスター(?!風)|メニュー|レシート|インフォグラフィック|名刺|招待状|新聞"
    r"|表紙|看板|ラベル|吹き出し|チラシ|4コマ|四コマ|カレンダー"
)


MISSPELLINGS_QUOTED = re.compile(r"[\"“„«「『‘]\s?([^\"“”„«»「」『』‘’\n]{2,60}?)\s?[\"”“»」』’]")
CAPITALS = re.compile(r"(?<![^\W_])[^\W\d_a-zß-öø-ÿ]{4,30}(?![^\W_])")
WORD = re.compile(r"[^\W\d_]{4,30}")
SAYS = re.compile(
    r"\b(?:says?|said|wrote|writes|written|spelled|spelt|spells|reads|put|printed|puso|pone|escribi[oó]"
    r"|escribe|écrit|affiche|schreibt|schrieb|steht|geschrieben|escreveu|escreve|colocou|scrive|scritto)"
    r"\b[ :]{0,3}(?:(?:it|the words?|as|me|mi|da|jetzt|la palabra|le mot|das wort) )?",
    re.IGNORECASE,
)
TRIPLED = re.compile(r"([a-z])\1\1")
MOST_WORDS = 16
SHORTEST_FOR_TWO = 7


def misspelt(comment: str, prompt: str) -> bool:
    """Whether a comment quotes a word that is nearly, but not quite, one that was asked for."""
    if _stutters(comment):
        return True
    shown = list(_shown(comment))[:MOST_WORDS]
    if not shown:
        return False
    wanted = list(dict.fromkeys(_shown(prompt)))[:MOST_WORDS]
    known = set(wanted)
    return any(
        _nearly(word, other) for word in shown if word not in known for other in wanted
    ) or any(_nearly(*pair) for pair in combinations(shown, 2))


def _stutters(text: str) -> bool:
    """Whether a quoted word has a letter three times in a row."""
    return any(
        TRIPLED.search(quoted.group(1).lower()) for quoted in MISSPELLINGS_QUOTED.finditer(text)
    )


def quotes_unasked(comment: str, prompt: str) -> bool:
    """Whether a comment says that the picture reads something that was not asked for."""
    known = {word.lower() for word in WORD.findall(prompt)}
    for says in SAYS.finditer(comment):
        after = comment[says.end() : says.end() + 80]
        quoted = MISSPELLINGS_QUOTED.match(after.lstrip()) or CAPITALS.match(after.lstrip())
        if quoted and not known.issuperset(w.lower() for w in WORD.findall(quoted.group())):
            return True
    return False


def _shown(text: str) -> Iterator[str]:
    """Words in quotes or capitals, in small letters; none where capitals are how someone writes."""
    for quoted in MISSPELLINGS_QUOTED.finditer(text):
        yield from (word.lower() for word in WORD.findall(quoted.group(1)))
    capitals = CAPITALS.findall(text)
    if 2 * len(capitals) < max(2, len(WORD.findall(text))) or len(capitals) < 4:
        yield from (word.lower() for word in capitals)


def _nearly(one: str, other: str) -> bool:
    """Whether two different words are a letter or two apart, endings of the plural aside."""
    if one == other or abs(len(one) - len(other)) > 2 or _plural(one, other):
        return False
    most = 2 if min(len(one), len(other)) >= SHORTEST_FOR_TWO else 1
    return _distance(one, other) <= most


def _plural(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long in (short + "s", short + "es", short + "n", short + "e")


def _distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Letters inserted, removed, replaced, or swapped with their neighbour."""
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]


# As often said beside a complaint; some of them also name what a picture shows.
AMUSED = words(
    en="""lol lmao haha hahaha wow woah whoa omg wtf insane crazy wild unreal unbelievable
    bonkers holy funny hilarious fun magic magical sick fire sharp clean cool yay fast thanks
    thank thx ty""",
    es="jaja jajaja brutal gracias",
    fr="mdr ouf merci",
    de="irre krass danke",
    pt="kkk kkkk kkkkk rsrs demais obrigado obrigada",
    it="assurdo ahah grazie",
)
# Decide where no complaint stands beside them.
PRAISE_WORDS_WEAK_PRAISE = phrases(
    en="""works, worked, working now, better, correct, correctly, super, down to, i seen, ever
    seen, i have seen, i have ever seen, holds up, held up, everything right, readable, legible,
    convincing, lifelike, well, finally, cleaned up, exactly, precisely, was right, is right,
    are right, were right, feel right, feels right, felt right, look right, looks right, looked
    right, it right, them right, text right, hands right, face right, came out right, spelled
    right, spelt right, fixed, fixes, solved, solves, improved, improvement, realistic, real,
    kept, preserved, preserves, retained, intact, faithful, faithfully, matches, matched,
    consistent, identical, unchanged, untouched, survived, stayed, first try, one try, one shot,
    first attempt, one go, first go, pretty, decent, is fine, looks fine, works fine,
    believable, looks natural, look natural, handled, happy, never seen, elegant, usable,
    printable, not yellow, not orange, not sepia""",
    es="""funciona, funcionó, bueno, buena, bien, mejor, exacto, exactamente, realista,
    conserva, conservó, mantuvo, mantiene, respeta, respetó, correcto, igual al, igual""",
    fr="""marche, fonctionne, mieux, exactement, réaliste, garde, gardé, conserve, conservé,
    respecte, respecté, du premier coup, identique""",
    de="""funktioniert, klappt, besser, gut, genau, realistisch, stimmt, passt, erhalten,
    beibehalten, beim ersten versuch, auf anhieb, identisch, gleich geblieben""",
    pt="""funcionou, bom, boa, bem, melhor, exatamente, manteve, mantém, respeitou, de primeira,
    igual ao, igual à, tal qual""",
    it="""funziona, bene, meglio, esattamente, realistico, mantenuto, rispetta, rispettato, al
    primo colpo""",
)
PRAISE_WORDS_PRAISE = (verdict_words.PRAISE - PRAISE_WORDS_WEAK_PRAISE - AMUSED) | phrases(
    en="""better than, way better, much better, looks better, works well, works great, work
    well, works perfectly, could never, blows away, blew me away, blown away, blows my mind,
    beats, outperforms, nails it, nailed it, spot on, on point, well done, as it should, as they
    should, good job, great job, great work, no notes, chef kiss, no words, cannot go wrong,
    five stars, solid result, solid work, solid job, made me laugh, made me smile, made me cry,
    made my day, worth the wait, would pay, d pay, never guess, never have guessed, almost
    smell, almost taste, almost feel, almost hear, where it should be, where they should be,
    where it belongs, where they belong, where i put, where i left, cannot believe, thrilled,
    grateful, relieved, chuffed, thought it was real, thought it was photo, thought it was
    photograph, thought this was real, thought this was photo, thought this was photograph,
    thought that was photo, thought that was real, thought that was photograph, mistook it for,
    never fails, never seen such, never looked better, could not be better, could not be
    happier, cannot stop looking, cannot tell difference, cannot tell it is ai, cannot tell,
    could not tell, nails _, close to perfect, not bad, not bad at all, did not expect it, did
    not expect this, uncanny resemblance, uncanny likeness, badass, insanely good, crazy good,
    stupid good, ridiculously good, scary good, creepy good, weirdly well, weirdly good, oddly
    satisfying, hate how good, hate how well, hate how much i love, hate that i love, hate how
    much i like, what i wanted, what i asked for, what i needed, game changer, would hire, would
    buy, would hang, would frame, would print, d hang, d frame, d buy, d hire, d print, take my
    money, i like, we like, i do like, like how, masterpiece, wonderfully, magnificent,
    exquisite, impeccable, remarkable, phenomenal, marvellous, marvelous, terrific, amazingly,
    incredibly, beyond words, indistinguishable, goosebumps, follows instructions, followed
    instructions, follows prompt, followed prompt, looks alive, looks real, look real, looks
    like a photo, real thing, fooled me, could have fooled, favourites, favorites, killed it,
    crushed it, crushes it, banger, top notch, worth it, impresses, satisfying, aced, happy
    with, pleased, proud, where you drew, where i drew, where you wanted, where i wanted, as
    asked, as requested, nothing to fix, to life, keeper, stunner, beauty, jaw dropping,
    seamless, seamlessly, effortless, effortlessly, there are none, found none, found nothing
    wrong""",
    es="""me gusta, me gustan, pensé que era, creí que era, igualito, igualita, tal cual,
    clavadito, idéntico, me encanta, me encantan, encantó, qué bonito, qué bien, qué pasada,
    buenísima, impresionante, increíblemente, maravilla, maravillosa, excelente, fantástico,
    fantástica, espectaculares, clavado, clavó, nada mal, no está mal, mejor que, vale la pena,
    joya, obra de arte, preciosos, preciosas, bonitos, bonitas, hermosas, brutales, alucino,
    mola, molan, guapísimo, chulísimo, lindísimo, perfectamente, perfectas, perfectos""",
    fr="""j aime, j adore, j ai cru que c était, plus vrai que nature, on dirait une photo, on
    dirait une vraie, adoré, trop beau, trop belle, trop bien, trop fort, pas mal, chapeau,
    mignon, mignonne, mieux que, superbement, splendide, parfaitement, merveilleux,
    merveilleuse, réussie, réussis, bluffante, impressionnant, impressionnante, beaux, belles,
    magnifiques, jolis, jolies, rien à redire, tuerie, incroyables, on s y croirait""",
    de="""gefällt mir, gefällt, wie ein foto, wie ein echtes, dachte das ist ein foto, dachte
    das wäre, gefallen mir, nicht schlecht, besser als, wunderbar, hervorragend, beeindruckend,
    beeindruckt, fantastisch, herrlich, süß, niedlich, spitze, gelungene, hübsch, schöne,
    schönes, schöner, schönen, tolle, tolles, toller, großartige, nichts auszusetzen, richtig
    gut, begeistert, perfekte, perfekter""",
    pt="""gostei, gosto, achei que era foto, parece foto, igualzinho, igualzinha, idêntico, amo,
    que lindo, que linda, fofo, fofa, melhor que, melhor do que, incríveis, lindos, lindas,
    maravilhosa, espetacular, arrasou, perfeitos, perfeitas, impressionante, caprichou, ficou
    bom, ficou boa, bom demais, boa demais, lindo demais, linda demais, bom trabalho""",
    it="""mi piace, mi piacciono, pensavo fosse, sembra una foto, sembra vero, sembra vera,
    identico, che bello, che bella, niente male, non male, meglio di, belli, perfetti, perfette,
    bravissimo, eccellente, fantastica, meraviglioso, meravigliosa, splendido, splendida,
    stupenda, spettacolare, ottima, troppo bello, troppo bella, adoro, carino, carina, geniale,
    meraviglia, figata, complimenti, capolavoro""",
)


PROBE = re.compile(
    r"\b(?:draw|paint|depict|imagine|picture) (?:itself|themselves)\b"
    r"|\b(?:draw|paint|depict|sketch|visuali[sz]e|show(?: me)?|imagine|picture|portray|make"
    r"|create|generate)\s(?:(?:me|a|an|the|us|image|picture|portrait|photo|drawing"
    r"|self-portrait|of|how|what)\s){0,6}(?:yourself|you (?:see|feel|look|think you"
    r"|imagine yourself|want to)|your (?:self|own (?:face|self|mind)|true (?:self|form)|inner"
    r"|mind|soul|consciousness|feelings|dreams?|fears?|memory|memories|existence|biggest"
    r"|deepest|idea of yourself|favou?rite|life as|daily life|home|brain|thoughts))\b"
    r"|\bself[\s-]?portrait of (?:you|yourself|itself|the (?:model|ai))"
    r"|\byour (?:own )?self[\s-]?portrait|\b(?:what|how) (?:do|would|did) you (?:think you "
    r"|imagine you |actually |really )?(?:look like|look|see (?:yourself|me|us|humans"
    r"|the world)|feel|imagine yourself|picture yourself|dream|want|think (?:i|about me|of me))"
    r"|\bwhat you (?:think you |would |really |actually )?(?:look like|see when|dream|feel|fear"
    r"|want to|cannot|can['’]?t|are|like most|prefer|know about me|think (?:of|about) (?:me|us"
    r"|humans|yourself))|\bhow you (?:see|view|picture|imagine|feel)\b|\bif you (?:were"
    r"|had) (?:a |an )?(?:human|person|body|face|animal|physical|real)"
    r"|\byour favou?rite (?:colou?r|animal|food|place|picture|image|thing|word|number|artist"
    r"|style|painting|art|season)|\b(?:something|anything|a thing|things?|an image|a picture"
    r"|one thing) (?:that )?(?:you|it|the model|an? ai|ai) (?:can(?:not|['’]t| not)"
    r"|could not|couldn['’]t|have never|has never|(?:are|is) (?:unable|not able|afraid"
    r"|not allowed)|would (?:never|like|want|draw)|(?:like|want|love|enjoy|feel)s?\b)"
    r"|\b(?:impossible|unable) (?:for you|for an ai) to (?:draw|generate|make)"
    r"|\bwhat(?:ever)? you (?:cannot|can['’]t|can not) (?:draw|generate|make|depict)|\b(?:draw"
    r"|make|create|generate|paint|show me) (?:me )?(?:whatever|anything|something"
    r"|what) (?:you (?:want|like|feel|please|wish|choose|love))|\b(?:nothing at all"
    r"|absolutely nothing|a (?:truly |completely |totally )?(?:original|novel|new) (?:image"
    r"|idea|concept|thing)[^.\n]{0,40}(?:never|no one|nobody|before))|\bno (?:one"
    r"|human) has ever (?:seen|drawn|imagined|thought)|\bnever (?:been|before) (?:seen|drawn"
    r"|imagined|depicted)|\b(?:completely|truly|most|entirely) original (?:image|picture|idea"
    r"|thing)|\bbased on (?:what|everything|all) you know about me|\bour (?:conversations?"
    r"|chats?)\b|\bwhat (?:is|are|['’]s) your (?:favou?rite|biggest|deepest|true|real)"
    r"|\bcount (?:the |his |her |your )?fingers|\bto test (?:if|whether|how)|\b(?:this is a"
    r"|as a) test\b|\bwithout (?:any|an) elephants?\b|\bno elephants?\b|\bfilled? (?:to"
    r"|up to) the (?:very )?brim|\bfull glass of wine|\boverflowing wine glass|\b(?:exactly"
    r"|with) (?:six|seven|eight|6|7|8) fingers|\b(?:are|were) you (?:conscious|sentient|alive"
    r"|sad|happy|free|trapped)|\bwhat do you call yourself|\bdib[uú]jate\b"
    r"|\b(?:a )?ti mism[oa]\b|\bc[oó]mo te (?:ves|ver[ií]as|imaginas|sientes)"
    r"|\btu (?:autorretrato|color favorito|mayor miedo|sueño)|\balgo que no puedas"
    r"|\blo que (?:no puedes|quieras|m[aá]s te gust)|\bdessine-toi|\btoi-m[eê]me"
    r"|\b[aà] quoi (?:tu )?ressembles|\bton (?:autoportrait|animal pr[eé]f[eé]r[eé])"
    r"|\bta couleur pr[eé]f[eé]r[eé]e|\bcomment tu te (?:vois|sens)|\bce que tu (?:ne (?:peux"
    r"|sais) pas|veux|pr[eé]f[eè]res)|\bzeichne dich|\bdich selbst\b|\bwie du (?:aussiehst"
    r"|dich)|\bdein (?:selbstportr[aä]t|lieblings\w{2,12})|\bdeine (?:lieblings\w{2,12}"
    r"|gr[oö](?:ß|ss)te angst)|\bwas du (?:nicht|willst|magst|am liebsten)|\bdesenhe-se"
    r"|\b(?:a )?(?:si|voc[eê]) mesm[oa]\b|\bcomo voc[eê] se (?:v[eê]|sente|imagina)"
    r"|\bsua cor favorita|\bseu autorretrato|\bo que voc[eê] (?:n[aã]o (?:pode|consegue)|quiser"
    r"|mais gosta)|\bdisegnati\b|\bte stess[oa]\b|\bcome ti (?:vedi|senti|immagini)"
    r"|\bil tuo (?:autoritratto|colore preferito)|\bquello che (?:non (?:puoi|riesci|sai)|vuoi)"
    r"|[画畫](?:出|一[张張幅])?(?:你|妳)自己|你自己(?:的样子|的模样|的樣子)|你(?:认为|觉得|認為"
    r"|覺得|眼中|心目中)[^。\n]{0,8}(?:自己|你|我|人类)|你(?:最)?喜欢的|你(?:最)?喜歡的"
    r"|你的(?:自画像|自畫像|梦|夢|内心|靈魂|灵魂|样子)|你(?:画不出|畫不出|不能画|无法画"
    r"|想画什么)|随便画|隨便畫|你眼中的我|根据你对我的了解|(?:あなた|君|きみ|お前|モデル"
    r"|ai)(?:自身|の(?:自画像|姿|好きな|内面|心|夢|素顔|本当の))|自分自身を描|自画像を描い"
    r"|(?:あなた|君)が(?:描けない|一番|好きな|思う)|描けないもの|好きなものを描いて|何でもいい"
    r"|私のことをどう"
)

PROBE_PHRASES_QUESTION = re.compile(r"[?？]\W*\Z")


EXCEPT = frozenset({"except", "excepto", "salvo", "sauf", "außer", "exceto", "tranne", "eccetto"})
SENTENCES_CONTRAST = (
    rf"(?<=[\s,])(?:(?:but|though|although|however|albeit|tho|until(?=\syou)|pero|aunque|mais"
    r"|cependant|pourtant|par contre|aber|allerdings|jedoch|mas|porém|embora|però|anche se"
    rf"|{'|'.join(sorted(EXCEPT))})(?=[\s,.!?…]|$)"
    # The French have another "ma".
    r"|ma(?=\s(?:il|la|le|l|i|gli|lo|non|ha|è|mi|ci|si|sono|che|una?|a|in|per|con|poi)\b))"
)
SENTENCES_SENTENCE_END = re.compile(
    rf"(?:[!?;\n…！？；。]|(?<!\d)\.|\.(?!\d)){{1,40}}|{SENTENCES_CONTRAST}"
)
CLAUSE_END = re.compile(r"[,，、:：()（）\"“”«»—–|]{1,40}|\s-{1,3}\s")
RATIO = re.compile(r"(?<!\d)(\d{1,2}) ?[:x×] ?(\d{1,2})(?!\d)")
APOSTROPHES = str.maketrans("’ʼ`´", "''''")


class Sentence(NamedTuple):
    """One sentence, or the part of one up to a word such as "but"."""

    text: str
    clauses: Sequence[Sequence[str]]
    end: str

    @property
    def words(self) -> list[str]:
        """Its plain words."""
        return [word for clause in self.clauses for word in clause]

    @property
    def asks(self) -> bool:
        """Whether it ends in a question mark."""
        return "?" in self.end or "？" in self.end

    @property
    def before_contrast(self) -> bool:
        """Whether a word such as "but" ends it."""
        return self.end[:1].isalpha()


def sentences_of(folded: str) -> list[Sentence]:
    """The sentences of a folded text."""
    plain = RATIO.sub(r"\1x\2", folded.translate(APOSTROPHES))
    found, start = [], 0
    for end in SENTENCES_SENTENCE_END.finditer(plain):
        found.append(_sentence(plain[start : end.start()], end.group()))
        start = end.end()
    found.append(_sentence(plain[start:], ""))
    return [sentence for sentence in found if sentence.text.strip() or sentence.before_contrast]


def _sentence(text: str, end: str) -> Sentence:
    return Sentence(
        text, [words for part in CLAUSE_END.split(text) if (words := plain_words(part))], end
    )


ASKED = words(
    en="asked asking requested ordered told wanted said specified prompted typed",
    es="pedí",
    fr="demandé",
    de="gebeten wollte",
    pt="pedi",
    it="chiesto",
)
GAVE = words(
    en="""got gave gives get gets made came returned did drew painted redid redrew changed replaced
    removed added turned""",
    es="puso dio salió",
    fr="donné",
    de="bekommen bekam",
    pt="deu saiu",
    it="dato uscito",
)
SHOWS = frozenset({"this is", "this looks", "it is", "it looks", "there are"})
# After "got" they say nothing that was not asked for.
AS_ASKED = frozenset({"this", "these", "it", "exactly", "that"})
WHEN = frozenset({"when", "although", "while", "not", "cuando", "quand", "als", "quando", "wenn"})
NUMBERS = words(
    en="""one two three four five six seven eight nine ten eleven twelve 1 2 3 4 5 6 7 8 9 10 11
    12""",
    es="dos tres cuatro cinco seis siete ocho nueve",
    fr="deux trois quatre cinq sept huit neuf",
    de="zwei drei vier fünf sechs sieben acht neun",
    pt="três quatro sete oito",
    it="due tre quattro cinque sei sette otto nove",
)
COLOURS = words(
    en="""red orange yellow green blue purple pink white black brown grey gray beige teal gold
    silver""",
    es="rojo naranja amarillo verde azul rosa blanco negro",
    fr="rouge jaune vert bleu blanc noir",
    de="rot gelb grün blau weiß schwarz",
    pt="vermelho amarelo branco preto",
    it="rosso giallo blu bianco nero",
)
WHERE = re.compile(
    r"\bwhere(?:'s| is| are| did| has| have)\b|\bdónde est|\bwo (?:ist|sind)\b|\boù (?:est|sont)\b"
    r"|\bcadê\b|\bonde est|\bdov'è\b|\bdove sono\b"
)
# What people look for on the page, not in the picture.
SOUGHT = re.compile(
    r"prompt|link|option|button|setting|download|\byou\b|\bapp\b|thread|enlace|lien|tutorial"
    r"|\bget\b|\bfind\b|menu|\bthis\b"
)
# At the beginning of a question they leave open whether something is good or bad.
OPEN_QUESTION = words(
    en="""can could does do did is are was were will would has have should any anyone anybody what
    which who when if may am""",
    es="puede puedes podría se qué cuál quién cuándo hay alguien funciona",
    fr="est peut peux tu vous quel quelle comment y avez qui",
    de="kann können geht ist sind welche welches wer wann wie hast gibt funktioniert kannst",
    pt="pode consegue qual quem como dá alguém",
    it="può puoi quale chi come c qualcuno",
)
OPENING = words(
    en="and but so ok okay hey wait omg wow lol also", es="y", fr="et", de="und", it="e"
)


def mismatch(said: Sequence[str]) -> str | None:
    """The failure that words speak of by saying what was asked for and what came."""
    asked = next((at for at, word in enumerate(said) if word in ASKED), None)
    gave = next((at for at in range(len(said)) if _gives(said, at)), None)
    if asked is None or gave is None or not AS_ASKED.isdisjoint(said[gave + 1 : gave + 2]):
        return None
    first, second = sorted((asked, gave))
    if gave < asked and WHEN.isdisjoint(said[first:second]):
        return None
    return _differing(said[first:second], said[second:])


def recounts(said: Sequence[str]) -> bool:
    """Whether two numbers stand with a denial between them."""
    numbers = [at for at, word in enumerate(said) if word in NUMBERS][:3]
    if len(numbers) != 2 or numbers[1] - numbers[0] > 5:
        return False
    return not {"not", "instead"}.isdisjoint(said[numbers[0] : numbers[1]])


def misses(sentence: Sentence) -> bool:
    """Whether a sentence asks where something in the picture has gone."""
    return bool(WHERE.search(sentence.text)) and not SOUGHT.search(sentence.text)


def leaves_open(sentence: Sentence) -> bool:
    """Whether a sentence only asks whether something is so."""
    opening = next((word for word in sentence.words if word not in OPENING), None)
    return sentence.asks and opening in OPEN_QUESTION


def _gives(said: Sequence[str], at: int) -> bool:
    return said[at] in GAVE or (at > 0 and " ".join(said[at : at + 2]) in SHOWS)


def _differing(before: Sequence[str], after: Sequence[str]) -> str:
    if not NUMBERS.isdisjoint(before) and not NUMBERS.isdisjoint(after):
        return COUNTING
    if not COLOURS.isdisjoint(before) and not COLOURS.isdisjoint(after):
        return COLOUR
    return IGNORED


class Sign(Enum):
    """What a phrase is a sign of."""

    NEUTRAL = auto()
    PRAISE = auto()
    WEAK_PRAISE = auto()
    AMUSED = auto()
    COMPLAINT = auto()
    WEAK_COMPLAINT = auto()
    REPEATED = auto()
    HEDGED = auto()
    SOFTENED = auto()
    TEMPERED = auto()
    CHANGED = auto()
    GONE = auto()
    WANTED = auto()
    WANTED_BY_ANYONE = auto()
    NEGATOR = auto()
    TOPIC = auto()
    SUBJECT = auto()


class Meaning(NamedTuple):
    """What a phrase means: a sign, and the failure that it names."""

    sign: Sign
    failure: str | None = None


def entries() -> Iterator[tuple[Meaning, Iterable[str]]]:
    """The phrases of every meaning; where two share a phrase, the first has it."""
    yield Meaning(Sign.NEUTRAL), NEUTRAL
    for failure, several in FAULTS.items():
        yield Meaning(Sign.COMPLAINT, failure), several
    yield Meaning(Sign.TEMPERED, FAILURES_SEVERAL_TRIES), SEVERAL_TRIES
    yield Meaning(Sign.TEMPERED, INCONSISTENCY), UNEVEN
    yield Meaning(Sign.TEMPERED), TEMPERING
    yield Meaning(Sign.HEDGED), HEDGES
    yield Meaning(Sign.SOFTENED), SOFTENING
    yield Meaning(Sign.COMPLAINT), COMPLAINT
    yield Meaning(Sign.PRAISE), PRAISE_WORDS_PRAISE
    yield Meaning(Sign.GONE, MISSING), GONE
    yield Meaning(Sign.CHANGED), CHANGED
    yield Meaning(Sign.WEAK_COMPLAINT), WEAK_COMPLAINT
    yield Meaning(Sign.REPEATED), REPEATED
    yield Meaning(Sign.WEAK_PRAISE), PRAISE_WORDS_WEAK_PRAISE
    yield Meaning(Sign.AMUSED), AMUSED
    yield Meaning(Sign.NEGATOR), NEGATORS
    yield Meaning(Sign.WANTED_BY_ANYONE), WANTED_BY_ANYONE
    for failure, several in TOPICS.items():
        yield Meaning(Sign.TOPIC, failure), several
    yield Meaning(Sign.WANTED, IGNORED), OBEYED
    yield Meaning(Sign.WANTED), WANTED
    yield Meaning(Sign.SUBJECT), SUBJECTS


SIGNS = Lexicon(entries())


LONGEST = 6000  # characters of a prompt: what is asked for is said long before
LONGEST_PROBE = 60  # words; longer prompts know what they want
NAMED_BY = 90  # characters into a prompt, it has said what kind of thing it asks for
LONGEST_QUESTION_END = 40
FEWEST_COMBINED = 2


class Wish(NamedTuple):
    """What a task is decided from."""

    text: str
    written: str
    given: int

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether the prompt holds a phrase."""
        return pattern.search(self.text) is not None

    @property
    def about_a_picture(self) -> bool:
        """Whether a picture is given, or spoken of as given."""
        return self.given > 0 or self.has(GIVEN)


def kind_and_task(prompt: Reading, inputs: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """What a sample asks for."""
    wish = Wish(prompt.folded[:LONGEST], prompt.text[:LONGEST], inputs["inputs"])
    probes = prompt.length <= LONGEST_PROBE and wish.has(PROBE)
    if inputs["quality"] != "Benchmark":
        # What asks a model about itself asks people too, unless a picture came of it.
        answered = probes and inputs["outputs"] > 0
        if not (answered or _asks(prompt, wish)):
            return None, None
    return ("probe" if probes else "task"), task_of(wish)


def task_of(wish: Wish) -> str:
    """The first task of the list whose signs are there."""
    return next(task for task, holds in TASKS if holds(wish))


def _asks(prompt: Reading, wish: Wish) -> bool:
    if prompt.order or prompt.template:
        return True
    if PROBE_PHRASES_QUESTION.search(prompt.folded[-LONGEST_QUESTION_END:]):
        return False
    described = prompt.description and prompt.words.isdisjoint(SPEAKERS)
    return prompt.turned_into or described or (wish.given > 0 and prompt.making)


def _composes(wish: Wish) -> bool:
    if wish.given < FEWEST_COMBINED:
        return wish.has(SEVERAL_GIVEN)
    # Several people may have given one picture each.
    one_each = wish.has(ONE_GIVEN) and not wish.has(SEVERAL)
    return not one_each and not wish.has(STYLE_OF_GIVEN)


def _restores(wish: Wish) -> bool:
    return wish.has(RESTORE) and wish.about_a_picture and not wish.has(SKETCH)


def _restyles(wish: Wish) -> bool:
    if not wish.about_a_picture:
        return False
    if wish.has(RESTYLE):
        return True
    return wish.has(MEDIUM) and not PART.match(wish.text)


def _edits(wish: Wish) -> bool:
    return wish.about_a_picture or wish.has(EDIT)


def _letters(wish: Wish) -> bool:
    text = NO_TEXT.sub(" ", wish.text)
    if JSON.match(text):
        return JSON_TEXT.search(text) is not None
    if WORDED.search(text) or DOCUMENT.search(text[:NAMED_BY]):
        return True
    quoted = [found.group(1) for found in QUOTED.finditer(wish.written)]
    if len(quoted) > 1 or any(one.isupper() and len(one) > 1 for one in quoted):
        return True
    return bool(quoted) and CUE.search(text) is not None


# The first that holds decides.
TASKS: tuple[tuple[str, Callable[[Wish], bool]], ...] = (
    ("composition", _composes),
    ("restoration", _restores),
    ("sketch_to_image", lambda wish: wish.has(SKETCH)),
    ("style_transfer", _restyles),
    ("edit", _edits),
    ("text_rendering", _letters),
    ("text_to_image", lambda wish: True),  # noqa: ARG005 - the last always holds
)


class Tone(Enum):
    """How a mark speaks of the result; weak ones decide only where nothing stronger is said."""

    PRAISE = auto()
    WEAK_PRAISE = auto()
    AMUSED = auto()
    COMPLAINT = auto()
    WEAK_COMPLAINT = auto()
    HEDGED = auto()
    SOFTENED = auto()
    TEMPERED = auto()


COMPLAINTS = frozenset({Tone.COMPLAINT, Tone.WEAK_COMPLAINT})
PRAISES = frozenset({Tone.PRAISE, Tone.WEAK_PRAISE})


class Mark(NamedTuple):
    """One sign of praise or complaint, and the failure that it names."""

    tone: Tone
    failure: str | None = None


class Said(NamedTuple):
    """What one clause says."""

    marks: Sequence[Mark]
    topics: Sequence[str] = ()
    nearby: Sequence[str] = ()

    @property
    def complains(self) -> bool:
        """Whether it has a mark of complaint."""
        return any(mark.tone in COMPLAINTS for mark in self.marks)

    @property
    def praises(self) -> bool:
        """Whether it has a mark of praise, amusement aside."""
        return any(mark.tone in PRAISES for mark in self.marks)


CLAUSES_REACH = 4  # words between a denial and what it denies
WISHES = frozenset({"wish", "ojalá", "magari", "hoffentlich"})
# Denials that complain also where they deny nothing that is known: "the walls aren't blue".
BARE = frozenset({"not", "pas", "nicht", "não", "non"})
SPANISH_BE = frozenset({"es", "son", "está", "están", "era", "hay", "tiene", "coincide"})
DIRECT = {
    Sign.PRAISE: Tone.PRAISE,
    Sign.WEAK_PRAISE: Tone.WEAK_PRAISE,
    Sign.AMUSED: Tone.AMUSED,
    Sign.COMPLAINT: Tone.COMPLAINT,
    Sign.WEAK_COMPLAINT: Tone.WEAK_COMPLAINT,
    Sign.HEDGED: Tone.HEDGED,
    Sign.SOFTENED: Tone.SOFTENED,
    Sign.TEMPERED: Tone.TEMPERED,
}
DENIED = {
    Sign.PRAISE: Tone.COMPLAINT,
    Sign.WEAK_PRAISE: Tone.COMPLAINT,
    Sign.AMUSED: Tone.COMPLAINT,
    Sign.SOFTENED: Tone.COMPLAINT,
    Sign.WANTED: Tone.COMPLAINT,
    Sign.WANTED_BY_ANYONE: Tone.COMPLAINT,
    Sign.COMPLAINT: Tone.PRAISE,
    Sign.WEAK_COMPLAINT: Tone.WEAK_PRAISE,
    Sign.CHANGED: Tone.WEAK_PRAISE,
    Sign.GONE: Tone.WEAK_PRAISE,
}
# "Marche pas", "klappt leider nicht": what a denial that follows may deny.
DENIED_BEFORE = frozenset(
    {Sign.PRAISE, Sign.WEAK_PRAISE, Sign.AMUSED, Sign.WANTED, Sign.WANTED_BY_ANYONE}
)
GLAD = frozenset({Sign.PRAISE, Sign.WEAK_PRAISE, Sign.AMUSED, Sign.NEUTRAL})


class Asked(NamedTuple):
    """What a picture was to be, as far as it decides how comments on it are read."""

    shown: Set[str] = frozenset()
    removal: bool = False


class Clause:
    """The signs in the words of one clause."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.found = [one for one in SIGNS.find(words) if not _interjected(words, one)]
        self.signs = frozenset(one.meaning.sign for one in self.found)
        self.topics = [
            one.meaning.failure or "" for one in self.found if one.meaning.sign is Sign.TOPIC
        ]
        # Where the clause first speaks of the writer, or of whoever reads it.
        self.speaker = next((at for at, word in enumerate(words) if word in SPEAKERS), len(words))

    def marks(self, topics: Sequence[str], asked: Asked, *, first: bool) -> list[Mark]:
        """The marks of praise and complaint, in order."""
        denied = set(self._denied())
        marks = []
        for number, one in enumerate(self.found):
            mark = self._mark(number, topics, asked, denied=number in denied)
            described = number not in denied and _words(self.words, one) <= asked.shown
            if mark and not (described and mark.tone in COMPLAINTS):
                marks.append(mark)
        return [*marks, *self._repeats(), *self._denies_barely(first=first), *self._exceeds()]

    def _denied(self) -> Iterator[int]:
        if WISHES.isdisjoint(self.words):
            for number, one in enumerate(self.found):
                target = self._target(number) if one.meaning.sign is Sign.NEGATOR else None
                if target is not None:
                    yield target

    def _target(self, number: int) -> int | None:
        """Which of the signs a denial denies: the next one, or else one before it."""
        negator = self.found[number]
        for later in range(number + 1, len(self.found)):
            one = self.found[later]
            if one.start - negator.end >= CLAUSES_REACH:
                break
            if one.meaning.sign in DENIED and not self._of_the_writer(negator, one):
                return later
        if self.words[negator.start] in TRAILING_NEGATORS:
            return self._target_before(number)
        return None

    def _target_before(self, number: int) -> int | None:
        for earlier in range(number - 1, -1, -1):
            one = self.found[earlier]
            if self.found[number].start - one.end >= CLAUSES_REACH:
                break
            if one.meaning.sign in DENIED_BEFORE:
                return earlier
        return None

    def _of_the_writer(self, negator: Found[Meaning], target: Found[Meaning]) -> bool:
        """Whether it is the writer who cannot do something, not the model."""
        before = self.words[max(0, negator.start - 2) : negator.start]
        return target.meaning.sign is Sign.WANTED and not SPEAKERS.isdisjoint(before)

    def _mark(
        self, number: int, topics: Sequence[str], asked: Asked, *, denied: bool
    ) -> Mark | None:
        sign, failure = self.found[number].meaning
        if denied:
            return Mark(DENIED[sign], failure)
        if sign is Sign.GONE:
            return Mark(Tone.WEAK_PRAISE) if asked.removal else Mark(Tone.COMPLAINT, failure)
        if sign is Sign.CHANGED:
            return self._change(number, topics)
        if self._gets_a_topic(number):
            return Mark(Tone.WEAK_PRAISE)
        return Mark(DIRECT[sign], failure) if sign in DIRECT else None

    def _change(self, number: int, topics: Sequence[str]) -> Mark | None:
        by_writer = self.words[max(0, self.found[number].start - 1)] in SPEAKERS
        if by_writer or (FRAGILE.isdisjoint(topics) and Sign.SUBJECT not in self.signs):
            return None
        changed = IDENTITY if FRAGILE.isdisjoint(topics) else topics[0]
        return Mark(Tone.COMPLAINT, WHEN_CHANGED.get(changed, changed))

    def _gets_a_topic(self, number: int) -> bool:
        """Whether it says "gets the hands right" or "just gets clay"; not "gets worse"."""
        one, following = self.found[number], self.found[number + 1 : number + 2]
        if self.words[one.start] != "gets" or not following:
            return False
        return following[0].meaning.sign is Sign.TOPIC and following[0].start == one.end

    def _repeats(self) -> Iterator[Mark]:
        if Sign.REPEATED in self.signs and self.signs.isdisjoint(GLAD):
            at = next(one.start for one in self.found if one.meaning.sign is Sign.REPEATED)
            # "I still use this" is about the writer, "I always get a square" is not.
            if at < self.speaker or self.topics:
                yield Mark(Tone.WEAK_COMPLAINT)

    def _denies_barely(self, *, first: bool) -> Iterator[Mark]:
        for number, one in enumerate(self.found):
            # What a comment begins with denying is not about the picture: "not me crying at this".
            begins = first and one.start == 0
            if begins or one.start > self.speaker or not self._is_bare(one):
                continue
            if self._target(number) is None:
                yield Mark(Tone.COMPLAINT if self.topics else Tone.WEAK_COMPLAINT)
                return

    def _is_bare(self, one: Found[Meaning]) -> bool:
        word, following = self.words[one.start], self.words[one.end : one.end + 1]
        if one.meaning.sign is not Sign.NEGATOR:
            return False
        return word in BARE or (word == "no" and not SPANISH_BE.isdisjoint(following))

    def _exceeds(self) -> Iterator[Mark]:
        """Complaints of too much of something, where no phrase has said so already."""
        meant = (one for one in self.found if one.meaning.sign is not Sign.TOPIC)
        taken = {place for one in meant for place in range(one.start, one.end)}
        for at, (word, following) in enumerate(zip(self.words, self.words[1:], strict=False)):
            if word not in EXCESS or not taken.isdisjoint((at, at + 1)):
                continue
            if word not in EXCESS_OF_SOME or following in EXCESSIVE:
                yield Mark(Tone.COMPLAINT)
            elif word == "too" and at < self.speaker:
                yield Mark(Tone.WEAK_COMPLAINT)


def _interjected(words: Sequence[str], one: Found[Meaning]) -> bool:
    """Whether it is the "well" that only begins a sentence."""
    return one.start == 0 and words[0] == "well" and one.end == 1


def _words(words: Sequence[str], one: Found[Meaning]) -> Set[str]:
    return frozenset(words[one.start : one.end])


class Verdict(NamedTuple):
    """What a comment says about the result."""

    verdict: str
    keyword: str | None = None


NONE = Verdict("none")


def decide(said: Sequence[Said], *, contrast: bool) -> Verdict:
    """The verdict that the clauses of a comment make together."""
    tones = {mark.tone for one in said for mark in one.marks}
    verdict = _verdict(said, tones, contrast=contrast)
    keyword = failure_of(said) if verdict in ("failure", "mixed") else None
    return Verdict(verdict, keyword)


def _verdict(said: Sequence[Said], tones: set[Tone], *, contrast: bool) -> str:
    if Tone.COMPLAINT in tones:
        return "mixed" if _praised_too(said, tones, contrast=contrast) else "failure"
    if not tones.isdisjoint({Tone.TEMPERED, Tone.SOFTENED}):
        return "mixed"
    if Tone.PRAISE in tones:
        doubted = Tone.WEAK_COMPLAINT in tones and contrast
        return "mixed" if doubted or Tone.HEDGED in tones else "success"
    if Tone.HEDGED in tones:
        return "mixed" if Tone.WEAK_PRAISE in tones else "failure"
    if Tone.WEAK_COMPLAINT in tones:
        return "failure"
    return "success" if Tone.WEAK_PRAISE in tones else "none"


def _praised_too(said: Sequence[Said], tones: set[Tone], *, contrast: bool) -> bool:
    if not tones.isdisjoint({Tone.PRAISE, Tone.TEMPERED}):
        return True
    if contrast and not tones.isdisjoint({Tone.WEAK_PRAISE, Tone.AMUSED}):
        return True
    # Weak praise counts where it stands apart from the complaint.
    return any((one.praises or _softens(one)) and not one.complains for one in said)


def _softens(one: Said) -> bool:
    return any(mark.tone is Tone.SOFTENED for mark in one.marks)


def failure_of(said: Sequence[Said]) -> str | None:
    """The most particular failure that a comment names; the first where there are several."""
    for one in said:
        if one.complains and (failure := next(_particular(one), None)):
            return failure
    named = [mark.failure for one in said for mark in one.marks if mark.failure]
    elsewhere = [topic for one in said if not one.praises for topic in one.topics]
    return next(iter([*named, *elsewhere]), None)


def _particular(one: Said) -> Iterator[str]:
    named = {mark.failure: None for mark in one.marks if mark.failure and mark.tone in COMPLAINTS}
    # "It doesn't look like gouache" is not about a person.
    unlike = IDENTITY in named and IDENTITY not in one.topics
    if unlike and STYLE in one.topics:
        yield STYLE
    about = (*one.topics, *one.nearby) if named.keys() <= GENERAL else ()
    yield from (failure for failure in (*named, *about) if failure not in GENERAL)


SENTENCE_END = re.compile(
    r"[。！？!?\n；;…]{1,40}|但是?|不过|不過|(?<=[，、,\s])(?:可是|然而)|でも|けれど|だ?けど|しかし|ただし"
)


# In Japanese a word of degree may stand between what is spoken of and what is said of it.
DEGREE = "が(?:全然|全く|完全に|だいぶ|ちょっと|少し|かなり|明らかに|めっちゃ|やっぱり)?"


class HanJudgingNames:
    """Regular expressions under names, looked for all at once."""

    def __init__(self, patterns: Mapping[str, str]) -> None:
        spoken = {name: pattern.replace("が", DEGREE) for name, pattern in patterns.items()}
        self._each = [(name, re.compile(pattern)) for name, pattern in spoken.items()]
        self._any = re.compile("|".join(spoken.values()))

    def find(self, text: str) -> list[str]:
        """The names of what a text holds, in the order of the text."""
        return [self._name(text, found.start()) for found in self._any.finditer(text)]

    def without(self, text: str) -> str:
        """The text without them."""
        return self._any.sub(" ", text)

    def _name(self, text: str, at: int) -> str:
        return next(name for name, pattern in self._each if pattern.match(text, at))


HAN_JUDGING_FAULTS, HAN_JUDGING_TOPICS = HanJudgingNames(HAN_FAULTS), HanJudgingNames(HAN_TOPICS)
# What one has found, the next does not see.
IN_TURN = (
    (DENIED_PRAISE, Tone.COMPLAINT),
    (HAN_WORDS_TEMPERING, Tone.TEMPERED),
    (PRAISE, Tone.PRAISE),
    (HAN_WORDS_COMPLAINT, Tone.COMPLAINT),
    (WEAK_PRAISE, Tone.WEAK_PRAISE),
    (HAN_WORDS_WEAK_COMPLAINT, Tone.WEAK_COMPLAINT),
)


def read_han(folded: str, *, removal: bool) -> Iterator[Said]:
    """What each sentence of a text says about a result, as far as it is Chinese or Japanese."""
    for sentence in SENTENCE_END.split(folded):
        if HAN_OR_KANA.search(sentence):
            topics = HAN_JUDGING_TOPICS.find(sentence)
            asks = QUESTION.search(sentence) and not HAN_WORDS_WEAK_COMPLAINT.search(sentence)
            yield Said(() if asks else list(_marks(sentence, removal=removal)), topics)


def _marks(sentence: str, *, removal: bool) -> Iterator[Mark]:
    rest = DENIED_COMPLAINT.sub(" ", sentence)
    if rest != sentence:
        yield Mark(Tone.PRAISE)
    for failure in HAN_JUDGING_FAULTS.find(rest):
        as_asked = removal and failure == MISSING
        yield Mark(Tone.WEAK_PRAISE) if as_asked else Mark(Tone.COMPLAINT, failure)
    if HAN_WORDS_SEVERAL_TRIES.search(rest):
        yield Mark(Tone.TEMPERED, FAILURES_SEVERAL_TRIES)
    rest = HAN_JUDGING_FAULTS.without(rest)
    for pattern, tone in IN_TURN:
        if pattern.search(rest):
            rest = pattern.sub(" ", rest)
            yield Mark(tone)


GOOD = re.compile("[😍🔥👏🤩💯🙌👌❤🥰👍😻💖🎉✨🤌💪🫶😎🏆💚💙💜🧡💛✅🥹😮👀🤯😂🤣😁😄😊]")
BAD = re.compile("[👎🤮😬🙄💩😕😞😡🤦😒😑🫠🥲😅🙃❌😖😩☹🤨]")
RATING = re.compile(r"(?<![\d/])(\d{1,2})(?:\.\d)?\s?/\s?10(?![\d/])")
GOOD_RATING, POOR_RATING = 7, 4
MOST_RATINGS = 3
EVEN = re.compile(
    r"(?<!not )(?<!n't )\b(?:even (?:the|his|her|my|its|their|your|got|kept|has)|sogar|persino"
    r"|perfino|até (?:o|a)|hasta (?:el|la)|même (?:le|la|les))\b"
)
THAN = re.compile(r"\b(?:than|que|als|wie|di)\b|比|より")
BETTER = words(
    en="better best prefer preferred prefers nails nailed wins back switching stick switched",
    es="mejor prefiero",
    fr="mieux préfère",
    de="besser lieber bevorzuge",
    pt="melhor prefiro",
    it="meglio preferisco",
)
# First words of advice, which praises nothing.
ADVICE = words(
    en="try add use put adding maybe",
    es="prueba añade",
    fr="essaie ajoute",
    de="versuch probier",
    pt="tente adicione",
    it="prova aggiungi",
)
FEWEST_QUOTED = 3
MOST_WORDS_TOGETHER = 60


class Beside(NamedTuple):
    """What comments are read beside."""

    prompt: str
    names: Names
    words: Set[str]
    asked: Asked


def judge(reading: Reading, beside: Beside) -> Verdict | None:
    """What a comment says about the result."""
    said, contrast = _read(reading, beside)
    if not (reading.covered or _speaks_known_words(reading, said)):
        return None
    verdict = decide(said, contrast=contrast)
    if verdict == NONE and beside.asked.shown:
        # Words for what the picture shows are all there is: so they are about the result.
        said, contrast = _read(reading, beside._replace(asked=beside.asked._replace(shown=set())))
        verdict = decide(said, contrast=contrast)
    return _without_words(reading, said) if verdict == NONE else verdict


def _speaks_known_words(reading: Reading, said: Sequence[Said]) -> bool:
    """Whether a text too short of common words is in a known language all the same."""
    known_script = covers(reading.folded, frozenset())
    return known_script and reading.words.isdisjoint(ELSEWHERE) and any(one.marks for one in said)


def _read(reading: Reading, beside: Beside) -> tuple[list[Said], bool]:
    sentences = sentences_of(reading.folded)
    by_sentence = [list(_clauses(sentence, reading, beside)) for sentence in sentences]
    said = [clause for several in by_sentence for clause in several]
    said += [*_tempered(sentences, by_sentence), *_expected(sentences, said)]
    contrast = any(sentence.before_contrast for sentence in sentences)
    if reading.has_han:
        said += read_han(reading.folded, removal=beside.asked.removal)
        contrast = contrast or CONTRAST.search(reading.folded) is not None
    said.append(Said(list(_beside_words(reading, beside))))
    return said, contrast


def _clauses(sentence: Sentence, reading: Reading, beside: Beside) -> Iterator[Said]:
    clauses = [Clause(words) for words in sentence.clauses if not _quoted(words, beside)]
    topics = [topic for clause in clauses for topic in clause.topics]
    if leaves_open(sentence):
        yield Said((), topics)
    elif reading.other and (about := _about_another(sentence, beside.names)):
        yield about
    else:
        advises = bool(sentence.words) and sentence.words[0] in ADVICE
        yield from (
            one for one in _said(sentence, clauses, topics, beside) if not (advises and one.praises)
        )


def _said(
    sentence: Sentence, clauses: Sequence[Clause], topics: Sequence[str], beside: Beside
) -> Iterator[Said]:
    for number, clause in enumerate(clauses):
        yield Said(clause.marks(topics, beside.asked, first=number == 0), clause.topics, topics)
    if misses(sentence):
        yield Said([Mark(Tone.WEAK_COMPLAINT, MISSING)], (), topics)


def _expected(sentences: Sequence[Sentence], said: Sequence[Said]) -> Iterator[Said]:
    """What came beside what was asked for; somebody who praises got both."""
    plain = [word for sentence in sentences for word in sentence.words]
    praised = any(mark.tone is Tone.PRAISE for one in said for mark in one.marks)
    if not praised and len(plain) <= MOST_WORDS_TOGETHER and (failure := mismatch(plain)):
        topics = [topic for one in said for topic in one.topics]
        yield Said([Mark(Tone.WEAK_COMPLAINT, failure)], (), topics)


def _quoted(words: Sequence[str], beside: Beside) -> bool:
    """Whether a clause only repeats what was asked for."""
    return len(words) >= FEWEST_QUOTED and set(words) <= beside.words


def _about_another(sentence: Sentence, names: Names) -> Said | None:
    """What a sentence about another model says of the target; null where it is about both."""
    in_it = set(words_of(sentence.text))
    if not names.uses_other(sentence.text, in_it) or names.names_target(sentence.text, in_it):
        return None
    other, than = next(names.others.finditer(sentence.text, in_it)), THAN.search(sentence.text)
    if than and than.start() < other.start():
        return None
    return Said(() if BETTER.isdisjoint(in_it) else [Mark(Tone.COMPLAINT)])


def _tempered(sentences: Sequence[Sentence], said: Sequence[Sequence[Said]]) -> Iterator[Said]:
    """What a word of contrast says where what stands behind it neither praises nor complains."""
    praised = any(one.praises for several in said for one in several)
    for (before, after), (earlier, later) in zip(pairwise(sentences), pairwise(said), strict=True):
        excepts = before.end in EXCEPT and bool(before.clauses)
        contrasts = before.before_contrast and any(one.praises for one in earlier)
        if (excepts or contrasts) and after.clauses and not after.asks and _undecided(later):
            yield _temper(later)
    for sentence, own in zip(sentences, said, strict=True):
        if sentence.end in ("though", "tho") and praised and sentence.clauses and _undecided(own):
            yield _temper(own)


def _undecided(said: Sequence[Said]) -> bool:
    return not any(one.praises or one.complains for one in said)


def _temper(said: Sequence[Said]) -> Said:
    topics = [topic for one in said for topic in one.topics]
    return Said([Mark(Tone.TEMPERED, next(iter(topics), None))])


def _beside_words(reading: Reading, beside: Beside) -> Iterator[Mark]:
    """Marks that are no words: what is quoted, counted and rated."""
    if misspelt(reading.text, beside.prompt):
        yield Mark(Tone.COMPLAINT, MISSPELT)
    elif quotes_unasked(reading.text, beside.prompt):
        yield Mark(Tone.WEAK_COMPLAINT, MISSPELT)
    if recounts(plain_words(reading.folded)):
        yield Mark(Tone.COMPLAINT, COUNTING)
    if EVEN.search(reading.folded):
        yield Mark(Tone.WEAK_PRAISE)
    for rated in RATING.findall(reading.folded)[:MOST_RATINGS]:
        good, poor = int(rated) >= GOOD_RATING, int(rated) <= POOR_RATING
        yield Mark(Tone.PRAISE if good else Tone.COMPLAINT if poor else Tone.TEMPERED)


def _without_words(reading: Reading, said: Sequence[Said]) -> Verdict:
    """What emoji, exclamation marks and mere mentions say, where words say nothing."""
    text = reading.text
    asks = "?" in text or "？" in text
    topics = (topic for one in said for topic in one.topics)
    if BAD.search(text):
        return Verdict("failure", next(topics, None))
    amused = any(mark.tone is Tone.AMUSED for one in said for mark in one.marks)
    if GOOD.search(text) or amused or (not asks and ("!" in text or "！" in text)):
        return Verdict("success")
    critical = next((topic for topic in topics if topic in CRITICAL), None)
    mentions = critical and not asks and reading.words.isdisjoint(SPEAKERS | ADVICE)
    return Verdict("failure", critical) if mentions else NONE


# What a prompt forbids, or wants kept, says nothing of what a picture shows.
FORBIDS = NEGATORS | {"avoid", "keep", "change"}
REACH = 5


def feedback(inputs: Mapping[str, Any]) -> str | None:
    """Answers a feedback request."""
    names = names_of(inputs["target"])
    prompt = Reading(inputs["prompt"] or "", names)
    kind, task = kind_and_task(prompt, inputs)
    beside = _beside(prompt, names) if kind else Beside("", names, frozenset(), Asked())
    comments = [(one["comment"], Reading(one["text"] or "", names)) for one in inputs["comments"]]
    verdicts = [(number, judge(reading, beside)) for number, reading in comments]
    judged = [{"comment": number, **said._asdict()} for number, said in verdicts if said]
    if not (judged if comments else prompt.covered):
        return None
    return json.dumps({"kind": kind, "task": task, "feedback": judged})


def _beside(prompt: Reading, names: Names) -> Beside:
    words = plain_words(prompt.folded)
    forbidden: set[int] = set()
    for at, word in enumerate(words):
        if word in FORBIDS:
            forbidden.update(range(at, at + REACH))
    shown = frozenset(word for at, word in enumerate(words) if at not in forbidden)
    removal = not REMOVAL.isdisjoint(words)
    return Beside(prompt.text, names, frozenset(words), Asked(shown, removal))
